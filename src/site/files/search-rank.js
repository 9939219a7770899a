// How well the entries of the search's index fit a query. Knows nothing of browsers.

// The weights of places, and of ways to fit.
// Phrases are the first cells of rows, and what is bold.
const WEIGHTS = { title: 10, page: 4, text: 1, phrases: 6 };
const TEXT = WEIGHTS.text;
const [WHOLE, SYNONYM, PREFIX, ALMOST, PART] = [1, 0.8, 0.6, 0.5, 0.2];

// Words without a meaning for the search.
const EMPTY = new Set(
  'a am an and are as at be by can do does for from getting have how http i if in into is it me my not of on or our so that the this to use using was we what when where which why will with you your'.split(
    ' ',
  ),
);

// Several words of readers that mean one thing, and a word for them.
const PAIRS = [
  [/too many requests/gi, '429'],
  [/\b(log|sign)(ging)? in(to)?\b/gi, 'login'],
  [/\bset up\b/gi, 'setup'],
  [/\bhow many\b/gi, 'count'],
  [/\b(double|twice) (submit|click|post)\w*/gi, 'duplicate'],
  [/\b(port|address) (is )?already (in use|used|taken)/gi, 'address already use start'],
];

// Words of readers, and the words of the pages for them.
const SYNONYMS = new Map();
for (const [said, meant] of Object.entries({
  'auth authenticate authentication authorisation authorization authorize bearer credentials login password secret sign signin token': 'key keys',
  'create insert make new post': 'add',
  'fetch read retrieve show': 'get',
  change: 'edit',
  'edit modify patch put update': 'change edit',
  'concurrent conflict race': 'precondition reused rejected',
  'fake mock sandbox stub': 'testing temporary',
  'download spec specification': 'openapi',
  'batch bulk mass': 'many import',
  'email sms': 'mail alert',
  sold: 'sell',
  'erase destroy': 'delete remove',
  'cors crossorigin preflight': 'origin browser cors',
  '429 quota rate ratelimit throttle throttled throttling': 'limits overloaded',
  'begin hello intro start started tutorial': 'quickstart',
  'cursor next offset page paginate paging': 'pagination',
  'container docker kubernetes podman service systemd': 'install',
  'client codegen generate generator insomnia openapi postman schema schemas sdk swagger typescript': 'openapi',
  'caddy haproxy nginx reverse': 'proxy proxies',
  'alert alerts grafana metrics observability prometheus telemetry': 'monitoring',
  'update version': 'upgrade upgrades',
  'dump snapshot': 'backup backups',
  'recover recovery': 'restore',
  'failover ha node nodes replica scale': 'machines cluster',
  rqlite: 'cluster',
  'cname dns hostname': 'domain domains',
  'certificate https ssl tls': 'domains https',
  'bind port': 'listen',
  'config configure env environment flags options settings': 'configuration',
  'buy bought count counts sell selling': 'sell count',
  'mark marked': 'edit change',
  'issued issue': 'certificate',
  'excel spreadsheet': 'csv export',
  'setup': 'install evening',
  'notification notify push subscribe': 'webhook events telling',
  'alive liveness readiness uptime': 'health',
  'news release releases': 'changelog',
  'obsolete removed sunset': 'deprecated deprecations',
  'double duplicate idempotent resend twice': 'retries idempotency',
  idempotency: 'retries',
  'compromised leaked lost stole stolen': 'revoke revoking safe',
  'cache caching polling': 'etag poll',
  'order sort': 'ascending',
  'payload size': 'body limits',
  'failure failures problem': 'errors',
})) for (const word of said.split(' ')) SYNONYMS.set(word, [...(SYNONYMS.get(word) ?? []), ...meant.split(' ')]);

// The words of a text, in small letters; `categoryId` is two and itself.
function words(text) {
  const parts = text.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2');
  return [text, parts].flatMap((text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}

// A word without its ending, so that `rotating` and `rotate` are one.
function stem(word) {
  const one = word.replace(/(?<=..)ies$/, 'y').replace(/(?<=..[^sui])s$/, '');
  return one.replace(/(?<=...)(ing|ed|e)$/, '');
}

// Returns true if one letter more, less or other, or two that changed places, make one word of another.
export function isAlmost(a, b) {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same += 1;
  const [x, y] = [a.slice(same), b.slice(same)];
  const isSwapped = x[0] === y[1] && x[1] === y[0] && x.slice(2) === y.slice(2);
  return isSwapped || x.slice(1) === y || x === y.slice(1) || x.slice(1) === y.slice(1);
}

// Splits the entries into words, once.
export function prepare(entries) {
  const vocabulary = new Map();
  const places = ({ title, page, text, words: more = '', phrases = [] }) =>
    [title, page, `${text} ${more}`, phrases.join(' ')].map((text) => {
      const found = new Set(words(text));
      for (const word of found) vocabulary.set(word, stem(word));
      return found;
    });
  return { entries: entries.map((entry) => ({ entry, places: places(entry) })), vocabulary };
}

// The words that a word of the query may mean, and how well each fits.
function meanings(word, vocabulary) {
  const fits = new Map();
  const add = (known, fit) => fits.set(known, Math.max(fit, fits.get(known) ?? 0));
  const root = stem(word);
  const meant = (SYNONYMS.get(word) ?? []).map(stem);
  for (const [known, knownRoot] of vocabulary) {
    if (knownRoot === root) add(known, WHOLE);
    else if (known.startsWith(word)) add(known, PREFIX);
    else if (word.length > 2 && known.includes(word)) add(known, PART);
    if (meant.includes(knownRoot)) add(known, SYNONYM);
  }
  if (word.length < 5 || [...fits.values()].some((fit) => fit > PART)) return fits;
  for (const known of vocabulary.keys()) if (isAlmost(word, known)) add(known, ALMOST);
  for (const [said, meant] of SYNONYMS) if (isAlmost(word, said)) for (const known of meant) add(known, ALMOST);
  return fits;
}

// How well a word fits an entry: as well as it fits the best place. In a text, a part of a word or a word with a wrong
// letter does not count.
function value(fits, { places }) {
  const best = (place) => Math.max(0, ...[...place].map((word) => fits.get(word) ?? 0));
  const value = Math.max(...Object.values(WEIGHTS).map((weight, i) => weight * best(places[i])));
  return value < TEXT * PREFIX ? 0 : value;
}

// The entries that fit at least half of the words, best first, but none that fits a tenth as well as the best one.
export function find({ entries, vocabulary }, query) {
  const plain = PAIRS.reduce((text, [said, meant]) => text.replace(said, meant), query);
  const all = [...new Set(words(plain.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')))];
  const some = all.filter((word) => !EMPTY.has(word));
  const asked = some.length ? some : all;
  const terms = asked.map((word) => {
    const fits = meanings(word, vocabulary);
    const values = entries.map((entry) => value(fits, entry));
    // A rare word counts for more.
    const weight = Math.log(1 + entries.length / (1 + values.filter(Boolean).length));
    return { fits, weight, values };
  });
  const ranked = entries.map((one, i) => {
    const matched = terms.filter(({ values }) => values[i]).length;
    if (!matched || matched * 2 < terms.length) return [0, one.entry];
    const sum = terms.reduce((sum, { weight, values }) => sum + weight * values[i], 0);
    // A title of few other words, a whole page or an operation is rather what was meant.
    const title = [...one.places[0]].filter((word) => !EMPTY.has(word));
    const named = title.filter((word) => terms.some(({ fits }) => (fits.get(word) ?? 0) > PART)).length / (title.length || 1);
    const kind = one.entry.path.includes('#') ? 1 : 1.15;
    return [(sum * (1 + named) * kind * (isOperation(one.entry) ? 1.25 : 1) * matched ** 2) / terms.length ** 2, one.entry];
  });
  const best = Math.max(...ranked.map(([rank]) => rank));
  const found = ranked.filter(([rank]) => rank > best / 10).sort(([a], [b]) => b - a);
  return found.map(([, entry]) => showing(entry, terms));
}

// The entry with the phrase that fits most words in front of its text, if one fits half of them.
function showing(entry, terms) {
  const fitting = (phrase) => terms.filter(({ fits }) => words(phrase).some((word) => (fits.get(word) ?? 0) > PART)).length;
  const counts = (entry.phrases ?? []).map(fitting);
  const most = Math.max(0, ...counts);
  if (!most || most * 2 < terms.length) return entry;
  return { ...entry, text: `${entry.phrases[counts.indexOf(most)]} · ${entry.text}` };
}

// The heading under which a result is shown.
export function group({ path }) {
  if (path.startsWith('/#')) return 'Operations';
  if (path.startsWith('/docs/errors#')) return 'Errors';
  return path.startsWith('/docs/configuration#') ? 'Configuration' : 'Guide';
}

export const isOperation = ({ page }) => /^[A-Z]+ \//.test(page);
