// Project settings → Domains: the key, the page, and its refreshes.
import { bare, copyButton, element } from './elements.js';
import { withdraw } from './settings-dialogs.js';
import { DomainCard, lookOf } from './settings-domain.js';
import { announce, busy, call, complain, dotted, Failure, show, time, words } from './settings-parts.js';
import { listen, showRedirects } from './settings-redirects.js';

// The interval during a check of a domain, while the reader has something to do in a terminal, and at other times.
const SHORT_MS = 2_000;
const LACKS_MS = 5_000;
const LONG_MS = 30_000;

const find = (id) => document.getElementById(id);
const [entry, keyForm, keyField, keyShow, keyProblem, trouble, settings, list, addForm, addField, addProblem] = [
  'entry',
  'key-form',
  'key',
  'key-show',
  'key-problem',
  'trouble',
  'settings',
  'domains',
  'add-form',
  'add',
  'add-problem',
].map(find);

// Here and nowhere else.
let key = '';
let timer;
let isChecking = false;
// True while a condition for adding a domain is missing.
let lacks = false;
let latest = null;
const cards = new Map();

const page = {
  // The host of the site, which is that of --base-url.
  home: new URL(document.querySelector('a[href$="/docs/domains"]').href).hostname,
  async call(method, path, body) {
    // What was wrong before the last act is of no interest any more.
    if (method !== 'GET') complain(addProblem, null);
    try {
      return await call(key, method, path, body);
    } catch (failure) {
      if (!isOfKey(failure)) throw failure;
      signOut(failure);
      // The message stands beside the field for the key, and nowhere else.
      throw new Failure('', failure.status);
    }
  },
  // Opens the details of one card, or of none.
  open(card) {
    for (const other of cards.values()) other.expand(other === card);
  },
  refresh,
  refreshSoon(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(refresh, milliseconds);
  },
  // A card that goes hands the focus to its neighbour.
  removed(card, consequence) {
    const next = card.node.nextElementSibling ?? card.node.previousElementSibling;
    drop(card);
    (next?.querySelector('.toggle') ?? find('domains-title')).focus();
    announce([`${card.domain.displayName} is removed`, consequence].filter(Boolean).join('. '));
  },
};

// Reads everything again. An earlier read that is still under way is dropped, so callers see the newest state.
function refresh() {
  clearTimeout(timer);
  const mine = look().then(
    (project) => (mine === latest ? shown(project) : latest),
    (failure) => (mine === latest ? failed(failure) : latest),
  );
  latest = mine;
  return mine;
}

const look = () => page.call('GET', 'project');

function shown(project) {
  complain(trouble, null);
  update(project);
  // Once more after the last check, which can end between the two reads of its finding and of its progress.
  const wasChecking = isChecking;
  isChecking = project.domains.some((domain) => domain.isChecking);
  if (isChecking || wasChecking) page.refreshSoon(SHORT_MS);
  else if (!document.hidden) page.refreshSoon(lacks ? LACKS_MS : LONG_MS);
}

function failed(failure) {
  complain(trouble, failure);
  if (key && !document.hidden) page.refreshSoon(LONG_MS);
}

// Returns true if another key may help.
const isOfKey = ({ status }) => status === 401 || status === 403;

// Leads back to the field for the key.
function signOut(failure) {
  if (!key) return;
  key = '';
  clearTimeout(timer);
  withdraw();
  complain(trouble, null);
  settings.hidden = true;
  entry.hidden = false;
  const why = failure.status === 401 ? 'Your key no longer works: it was revoked or has expired. Enter another key.' : failure.message;
  refuseKey(new Failure(why, failure.status));
}

// Shows why a key is not accepted. The help line may say the same.
function refuseKey(failure) {
  complain(keyProblem, failure);
  find('key-help').hidden = failure.status === 403;
  keyField.setAttribute('aria-invalid', 'true');
  keyField.focus();
}

function update(project) {
  const focused = document.activeElement;
  const card = focused.closest('.card');
  const wasEmpty = cards.size === 0;
  facts(project);
  const names = new Set(project.domains.map(({ name }) => name));
  for (const [name, old] of cards) if (!names.has(name)) drop(old);
  // Newest first; those that came together stay in the order of their names.
  const newestFirst = (one, other) => (one.addedAt < other.addedAt ? 1 : one.addedAt > other.addedAt ? -1 : 0);
  project.domains.sort(newestFirst).forEach((domain, at) => {
    if (!cards.has(domain.name)) cards.set(domain.name, new DomainCard(domain, page));
    const { node } = cards.get(domain.name);
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
    cards.get(domain.name).update(domain, project);
  });
  // Opens the first card that may need an action. It stays open until another one is opened.
  if (wasEmpty) page.open(cards.get(project.domains.find((domain) => lookOf(domain) !== 'live')?.name));
  find('no-domains').hidden = names.size > 0;
  const wasInRedirects = find('redirects').contains(focused);
  showRedirects(project, page);
  // The element with the focus may be gone.
  if (focused === document.body || focused.checkVisibility()) return;
  const heading = card?.isConnected ? card.querySelector('.toggle') : find('domains-title');
  (wasInRedirects ? find('redirects-title') : heading).focus();
}

function drop(card) {
  card.node.remove();
  cards.delete(card.name);
}

// The plan, the deploy and the target of DNS records, and the obstacles to adding a domain.
function facts({ plan, deploy, platformHost }) {
  show(find('plan'), plan);
  show(find('deploy'), deploy ?? 'none yet', () => {
    if (!deploy) return ['None yet'];
    const files = deploy.files === 1 ? '1 static file' : `${deploy.files} static files`;
    return [`#${deploy.id}`, ...(deploy.deployedAt ? [', ', time(deploy.deployedAt)] : []), deploy.files ? `, ${files}` : ''];
  });
  show(find('target'), platformHost ?? 'none', () => (platformHost ? [element('code', {}, ...dotted(platformHost))] : ['Not set yet']));
  const needs = [
    ['Set the plan to pro or enterprise (a setting of this service; nothing is charged)', 'petstore site plan pro --database FILE', plan !== 'free'],
    ['Publish the site', 'petstore site deploy --database FILE', Boolean(deploy)],
    ['Start the service with the host of the platform', 'petstore serve --platform-host HOST', Boolean(platformHost)],
  ];
  lacks = needs.some(([, , isDone]) => !isDone);
  find('needs').hidden = !lacks;
  find('add-fields').disabled = lacks;
  show(find('needs-list'), needs, () => needs.map(need));
}

// A condition with its command, or that it holds.
function need([what, command, isDone]) {
  if (isDone) return element('li', { class: 'done' }, `${what} `, element('span', { class: 'badge' }, '✓ Done'));
  const code = element('code', {}, ...words(`'${command}'`)[1].childNodes);
  return element('li', {}, `${what}: `, code, copyButton('command', code, announce));
}

keyForm.addEventListener('submit', (event) => {
  event.preventDefault();
  const given = bare(keyField.value);
  busy(keyForm.querySelector('.main'), async () => {
    try {
      // Other text that cannot be sent in a header field.
      if (!/^[\x21-\x7e]+$/.test(given)) throw new Error('Enter an API key: letters, digits and punctuation, without spaces.');
      const project = await call(given, 'GET', 'project');
      key = given;
      latest = null;
      shown(project);
    } catch (failure) {
      refuseKey(failure);
      return;
    }
    complain(keyProblem, null);
    find('key-help').hidden = false;
    keyField.removeAttribute('aria-invalid');
    keyForm.reset();
    hideKey();
    entry.hidden = true;
    settings.hidden = false;
    find('project-title').focus();
    announce(`The settings are open. Domains: ${cards.size}`);
  });
});

keyShow.addEventListener('click', () => {
  if (keyField.type === 'text') {
    hideKey();
    return;
  }
  keyField.type = 'text';
  keyShow.textContent = 'Hide';
  keyShow.setAttribute('aria-pressed', 'true');
});

function hideKey() {
  keyField.type = 'password';
  keyShow.textContent = 'Show';
  keyShow.setAttribute('aria-pressed', 'false');
}

// The page is cleared along with the key.
find('forget').addEventListener('click', () => location.reload());

addField.addEventListener('input', () => complain(addProblem, null));
addForm.addEventListener('submit', (event) => {
  event.preventDefault();
  busy(addForm.querySelector('button'), async () => {
    complain(addProblem, null);
    addField.removeAttribute('aria-invalid');
    try {
      if (!addField.value.trim()) throw new Error('Enter a domain name, such as pets.example.com.');
      const added = await page.call('POST', find('add-www').checked ? 'pairs' : 'domains', { name: addField.value });
      const [{ name, displayName, record }, www] = [added].flat();
      addForm.reset();
      await refresh();
      page.open(cards.get(name));
      cards.get(name)?.record.focus();
      const names = [displayName, www?.displayName].filter(Boolean).join(' and ');
      announce(`${names}: added. In the DNS settings of ${record.zone}, create the records shown.`);
    } catch (failure) {
      complain(addProblem, failure);
      addField.setAttribute('aria-invalid', 'true');
      addField.focus();
    }
  });
});

listen(page);
document.addEventListener('visibilitychange', () => {
  if (!key || isChecking) return;
  if (document.hidden) clearTimeout(timer);
  else refresh();
});
entry.hidden = false;
