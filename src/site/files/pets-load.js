// Loads what the address asks for and shows it, with the reason if it cannot, or if nothing is there.
import { element } from './elements.js';
import { base, check, doubt, token, verdict, whenKeyChanges, whenKeyIsChecked } from './key.js';
import { offer, openAdder } from './pets-add.js';
import { epoch, here, isHere } from './pets-api.js';
import { count, filters, forgetCounts, showCounts, statusOf } from './pets-counts.js';
import { allDrafts, settle } from './pets-drafts.js';
import { findPage, stopFinding } from './pets-find.js';
import { refuseKey, settleKey } from './pets-key.js';
import { draw, rowOf, show, shownPets } from './pets-list.js';
import { lose, unwatch, watch } from './pets-live.js';
import { clearPlace, turnPages } from './pets-pages.js';
import { canFind, inventory, list, mayWrite, part, petsOf, press, say } from './pets-parts.js';
import { showSelection } from './pets-select.js';
import { address, asked, before, isId } from './pets-view.js';
import { shownName } from './table.js';

const bar = inventory.querySelector('.bar');
const [order, limit] = ['order', 'limit'].map(part);
const TITLE = document.title;
const listeners = [];
// `listener` gets each view before it is loaded.
export const whenViewed = (listener) => listeners.push(listener);

// Goes to another view. `trail` has the beginning of each page before it, and `from` is the number of pets before it.
export function go(changes, { trail = [], from } = {}, way = 'pushState') {
  history[way]({ trail, from }, '', address({ ...asked(), id: '', ...changes }));
  return load();
}
export const START = { after: '', before: '' };
export const EVERYTHING = { ...START, name: '', categoryId: '', status: '' };

let isEmpty = false;
// The number of the last request: a response to an earlier one is out of date.
let turn = 0;
// When a list that could not be read is asked for again.
const AGAIN_MS = 5_000;
let again;
// The words of the last failure.
let failed = '';
const isTold = () => part('state').textContent === failed;
// The server and the key whose pets are shown.
let loadedFor = '';
const question = () => `${base()} ${token()}`;
const progress = element('span', {});
const stop = press('Stop', stopFinding);

// `isAgain`: what the last try said stays until there is something new to say.
export async function load(isAgain = false) {
  const view = asked();
  const mine = (turn += 1);
  clearTimeout(again);
  showView(view);
  unwatch();
  isEmpty = false;
  if (!token()) return showNothing();
  list.setAttribute('aria-busy', 'true');
  if (!isAgain && !shownPets().length) say('', 'Loading…');
  const to = here();
  const tell = (found, id) => {
    progress.textContent = `${petsOf(found.length)} found. Looking on from id ${id}… `;
    if (stop.isConnected) return;
    clearPlace();
    say('', progress, stop);
  };
  // What a change has overtaken is out of date.
  let began;
  let page;
  for (let tries = 0; tries < 2; tries += 1) {
    began = epoch();
    page = await findPage(view, to, () => mine === turn && isHere(to), tell);
    if (!page || mine !== turn) return undefined;
    if (page.failure || page.isStopped || began === epoch()) break;
  }
  list.removeAttribute('aria-busy');
  list.classList.toggle('old', Boolean(page.failure));
  if (page.failure) return sayFailure(page, view, isAgain);
  if (isIgnored(page.response)) return sayIgnored();
  if (verdict() === 'unclear') check();
  return showPage(page, view, to, isAgain && !isTold());
}

function showView(view) {
  for (const link of filters) {
    const status = statusOf(link);
    link.href = address({ ...view, ...START, status, id: '' });
    if (status === view.status) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
  for (const listener of listeners) listener(view);
  if (![...limit.options].some(({ value }) => value === view.limit)) limit.append(element('option', { value: view.limit }, `${view.limit} per page`));
  limit.value = view.limit;
  for (const shown of [bar, limit]) shown.hidden = !token();
  order.hidden = !token() || !canFind;
  showCounts();
  offer();
  const what = view.id ? `Pet ${view.id}` : view.name && `“${view.name}”`;
  document.title = [what, view.status && (view.status === 'unset' ? 'no status' : view.status), TITLE].filter(Boolean).join(' · ');
}

function showNothing() {
  show([], here());
  list.removeAttribute('aria-busy');
  clearPlace();
  forgetCounts();
  say('', 'Enter an API key to see the pets.', ...(asked().id ? [' A key stays in the tab where it was entered.'] : []));
}

function sayFailure({ response, code, failure }, view, isAgain) {
  const isRefused = [401, 403].includes(response?.status);
  if (!shownPets().length || isRefused) show([], here());
  if (!shownPets().length) clearPlace();
  if (isRefused) refuse(!isAgain);
  else if (shownPets().length) lose();
  if (!isRefused && code !== 'invalid_parameter') again = setTimeout(tryAgain, AGAIN_MS);
  if (code === 'invalid_parameter') return say('bad', 'This address asks for something that the list does not know. ', press('Show all pets', () => go({ ...EVERYTHING, limit: '20', order: '' })), ' ', ...failure.slice(1));
  // Another message stays, and so does the same one, which may be open.
  const words = element('span', {}, ...failure, ' ', press('Try again', retry));
  if (isAgain && (!isTold() || words.textContent === failed)) return undefined;
  failed = words.textContent;
  return say('bad', words);
}

const retry = () => {
  check(true);
  load();
};
// Unless somebody is entering another key.
const tryAgain = () => loadedFor === question() && load(true);
addEventListener('online', () => list.classList.contains('old') && tryAgain());

// The key has worked, and works no longer. `isAsked`: somebody has just asked for something.
export function refuse(isAsked) {
  loadedFor = '';
  doubt();
  forgetCounts();
  refuseKey(isAsked);
}

// A service that does not know the search would show pets that nobody asked for.
const isIgnored = (response) => /\b(?:name|categoryId|order|before)\b/.test(response.headers.get('Ignored-Parameters') ?? '');
function sayIgnored() {
  show([], here());
  clearPlace();
  say('bad', 'This service cannot search. ', press('Show all pets', () => go({ ...EVERYTHING, order: '' })));
}

let openId = '';
// `isQuiet`: what was said meanwhile stays.
function showPage(page, view, to, isQuiet) {
  const { found } = page;
  const hasIt = found.some(({ id }) => id === view.id);
  // The address names a pet of another page.
  if (view.id && !hasIt && (view.status || view.name || view.categoryId || view.before || view.after !== before(view.id))) {
    return go({ ...EVERYTHING, order: '', after: before(view.id), id: view.id }, {}, 'replaceState');
  }
  show(found, to, view);
  showSelection();
  turnPages(view, page);
  isEmpty = !found.length && !page.isStopped;
  if (!isQuiet) say('', ...about(page, view, hasIt));
  if (view.id !== openId) rowOf(view.id)?.scrollIntoView({ block: 'nearest' });
  openId = view.id;
  watch(view, to, page);
  count();
  keepPlace();
  return undefined;
}

// What there is to say about a page.
function about({ found, isStopped, following }, view, hasIt) {
  if (view.id && !hasIt) return [`There is no pet ${view.id}.`, found.length ? ` The next one is ${found[0].id}.` : ''];
  if (isEmpty) return nothing(view);
  return isStopped ? ['Stopped. ', press('Look on', () => go({ after: following.after ?? '', before: following.before ?? '' }))] : [];
}

// After a reload, the page is where it was.
function keepPlace() {
  const { scroll } = history.state ?? {};
  if (!scroll) return;
  scrollTo({ top: scroll, behavior: 'instant' });
}
addEventListener('scrollend', () => history.replaceState({ ...history.state, scroll: scrollY }, ''));

// The reason for an empty table, and the way on.
function nothing({ status, name, categoryId, after, before: end }) {
  const all = press('Show all pets', () => go(EVERYTHING));
  const kind = status === 'unset' ? 'pet without a status' : [status, 'pet'].filter(Boolean).join(' ');
  if (name) {
    const isFiltered = status || categoryId;
    const wider = press('Look among all pets', () => go({ ...EVERYTHING, name }));
    const orId = isId(name) ? `has the id ${name} or ` : '';
    return [`No ${kind} ${categoryId ? `of category ${categoryId} ` : ''}${orId}is named “`, shownName(name), '”. ', ...(isFiltered ? [wider, ' '] : []), press('Clear the search', () => go({ ...START, name: '' }))];
  }
  if (after || end) return ['There are no more pets. ', press('First page', () => go(START))];
  if (categoryId) return [`No ${kind} has the category ${categoryId}. `, all];
  if (status) return [status === 'unset' ? 'Every pet has a status. ' : `No pet is ${status}. `, all];
  const add = mayWrite() ? [press('Add one', openAdder), ' or '] : [];
  return ['No pets yet. ', ...add, element('a', { href: '/docs/data' }, 'import a file'), '.'];
}

whenKeyIsChecked(() => {
  offer();
  settleKey();
  // What was refused before may be taken now.
  for (const draft of allDrafts()) {
    if (!draft.problem?.words) continue;
    draft.problem = null;
    settle(draft);
  }
  // What was chosen or typed meanwhile stays.
  if (loadedFor !== question()) {
    loadedFor = question();
    return load();
  }
  draw();
  showSelection();
  return isEmpty && say('', ...nothing(asked()));
});
whenKeyChanges(() => {
  settleKey();
  draw();
  // Somebody has typed into the key, and taken it back, while a list was on its way.
  if (token() && loadedFor === question() && list.hasAttribute('aria-busy')) load();
  if (token()) return;
  loadedFor = '';
  load();
});

// The first view.
export function begin() {
  if (token()) {
    loadedFor = question();
    check();
  }
  load();
}
