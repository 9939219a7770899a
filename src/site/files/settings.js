// Project settings → Domains: the key, what is shown, and when it is looked at again.
import { element } from './elements.js';
import { DomainCard } from './settings-domain.js';
import { announce, busy, call, complain, show, time, words } from './settings-parts.js';
import { listen, showRedirects } from './settings-redirects.js';

// While a look at a domain is under way, and else while somebody sees the page.
const SHORT_MS = 2_000;
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
let latest = null;
const cards = new Map();

const page = {
  call: (method, path, body) => call(key, method, path, body),
  refresh,
  refreshSoon(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(refresh, milliseconds);
  },
  // A card that goes hands the focus to its neighbour.
  removed(card, consequence) {
    const next = card.node.nextElementSibling ?? card.node.previousElementSibling;
    drop(card);
    (next?.querySelector('h3') ?? find('domains-title')).focus();
    announce([`${card.domain.displayName} is removed`, consequence].filter(Boolean).join('. '));
  },
};

// Looks at everything again. Whoever waits for it sees the newest, as a look that was begun before is dropped.
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
  // Once more after the last check: a check can end between the reading of its finding and of whether it is under way.
  const wasChecking = isChecking;
  isChecking = project.domains.some((domain) => domain.isChecking);
  if (isChecking || wasChecking) page.refreshSoon(SHORT_MS);
  else if (!document.hidden) page.refreshSoon(LONG_MS);
}

function failed(failure) {
  complain(trouble, failure);
  // A key that is no longer valid has to be entered again.
  if (failure.status === 401 || failure.status === 403) entry.hidden = false;
  else if (!document.hidden) page.refreshSoon(LONG_MS);
}

function update(project) {
  const focused = document.activeElement;
  const card = focused.closest('.card');
  facts(project);
  const names = new Set(project.domains.map(({ name }) => name));
  for (const [name, old] of cards) if (!names.has(name)) drop(old);
  // Newest first; those that came together stay in the order of their names.
  const newestFirst = (one, other) => (one.addedAt < other.addedAt ? 1 : one.addedAt > other.addedAt ? -1 : 0);
  project.domains.sort(newestFirst).forEach((domain, at) => {
    if (!cards.has(domain.name)) cards.set(domain.name, new DomainCard(domain, page));
    const { node } = cards.get(domain.name);
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
    cards.get(domain.name).update(domain, project.redirects);
  });
  find('no-domains').hidden = names.size > 0;
  const wasInRedirects = find('redirects').contains(focused);
  showRedirects(project, page);
  // What had the focus may be gone.
  if (focused === document.body || focused.checkVisibility()) return;
  const heading = card?.isConnected ? card.querySelector('h3') : find('domains-title');
  (wasInRedirects ? find('redirects-title') : heading).focus();
}

function drop(card) {
  card.node.remove();
  cards.delete(card.name);
}

// The plan, the deploy and the platform, and what keeps domains from being added.
function facts({ plan, deploy, address, platformHost }) {
  show(find('plan'), plan);
  show(find('deploy'), deploy ?? 'none yet', () => {
    if (!deploy) return ['none yet'];
    const files = deploy.files === 1 ? '1 static file' : `${deploy.files} static files`;
    return [`number ${deploy.id}, `, time(deploy.deployedAt), deploy.files ? `, ${files}` : ''];
  });
  show(find('address'), address ?? 'none', () => [address ? element('code', {}, address) : 'none']);
  const needs = [
    plan === 'free' && "Domains need the plan pro or enterprise. Run 'petstore site plan pro'.",
    !deploy && "Domains need a deployed site. Run 'petstore site deploy'.",
    !platformHost &&
      "Domains need the host of the platform. Start the service with 'petstore serve --platform-host HOST'.",
  ].filter(Boolean);
  show(find('needs'), needs.length && needs, () => needs.map((need) => element('p', { class: 'note' }, ...words(need))));
}

keyForm.addEventListener('submit', (event) => {
  event.preventDefault();
  // As people paste it from an example.
  const given = keyField.value.trim().replace(/^Bearer\s+/i, '');
  busy(keyForm.querySelector('.main'), async () => {
    try {
      // What else cannot be sent in a header field.
      if (!/^[\x21-\x7e]+$/.test(given)) throw new Error('Enter an API key: letters, digits and punctuation, without spaces.');
      const project = await call(given, 'GET', 'project');
      key = given;
      latest = null;
      shown(project);
    } catch (failure) {
      complain(keyProblem, failure);
      keyField.setAttribute('aria-invalid', 'true');
      keyField.focus();
      return;
    }
    complain(keyProblem, null);
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

// What was shown goes with the key.
find('forget').addEventListener('click', () => location.reload());

addForm.addEventListener('submit', (event) => {
  event.preventDefault();
  busy(addForm.querySelector('button'), async () => {
    complain(addProblem, null);
    addField.removeAttribute('aria-invalid');
    try {
      const added = await page.call('POST', find('add-www').checked ? 'pairs' : 'domains', { name: addField.value });
      const [{ name, displayName, record }, www] = [added].flat();
      addForm.reset();
      await refresh();
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
