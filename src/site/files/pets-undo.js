// What this tab has changed: it can be looked up and, with the tag that each change returned, undone.
import { element } from './elements.js';
import { base, isKept } from './key.js';
import { call, here, inTurn, isThis, json, TYPE } from './pets-api.js';
import { asShown } from './pets-drafts.js';
import { drop, linkOf, put } from './pets-list.js';
import { leadFocus, named, part, petsOf, press, say } from './pets-parts.js';
import { readPets, shownName } from './table.js';

const NAME = 'pets-changes';
// The most changes that are kept.
const MOST = 50;
const fold = part('changes');
const entries = read();

// The tab keeps them as it keeps the key: not where scripts of deployed files could read them.
function read() {
  try {
    return isKept ? JSON.parse(sessionStorage.getItem(NAME) ?? '[]') : [];
  } catch {
    return [];
  }
}
function write() {
  try {
    if (isKept) sessionStorage.setItem(NAME, JSON.stringify(entries));
  } catch {
    // A browser may forbid it. They then last as long as the page.
  }
}

// Keeps a change. `before` and `after` are the pet; `names` are the members that were changed.
export function record({ to, ...change }) {
  const entry = { ...change, base: to.base, at: Date.now() };
  entries.unshift(entry);
  entries.length = Math.min(entries.length, MOST);
  write();
  list();
  return entry;
}

export const isNewest = (entry) => entries[0] === entry;

export function forgetChanges() {
  entries.length = 0;
  write();
  list();
}

const isOpen = (entry) => entry?.tag && !entry.state;
// A button that undoes changes, the last one first; nothing if there is nothing to undo.
export function undoButton(...all) {
  const some = all.filter(isOpen);
  return some.length ? [' ', press('Undo', () => undoAll(some))] : [];
}
async function undoAll(some) {
  const done = await Promise.all(some.toReversed().map(undo));
  const undone = done.filter(Boolean).length;
  if (undone === some.length && undone > 1) say('good', `Undone: ${petsOf(undone)}.`);
  else if (some.length > 1) say('bad', `${undone} of ${petsOf(some.length)} undone. The others were changed since, or could not be reached.`, ...undoButton(...some));
  leadFocus(() => linkOf(some[0].after.id));
}
export function undoLast() {
  const last = entries.find((entry) => isOpen(entry) && entry.base === base());
  if (last) undoAll([last]);
}

// Undoes a change. Returns true if it is undone.
function undo(entry) {
  if (!isOpen(entry)) return false;
  entry.state = 'undone';
  return inTurn(async () => {
    const to = entry.base === base() ? here() : { ...here(), base: entry.base };
    const { id } = entry.after;
    const answer = await (entry.kind === 'added' ? unadd(entry, to) : unchange(entry, to));
    if (answer.failure) return notUndone(entry, answer);
    write();
    list();
    if (entry.kind === 'added') drop(id, to);
    else put(readPets(answer.text), to);
    say('good', 'Undone: ', named(entry.before ?? entry.after), entry.kind === 'added' ? ' is deleted again.' : ' is as it was before.');
    return true;
  });
}

const unadd = ({ after, tag }, to) => call('DELETE', `/pets/${after.id}`, { headers: { 'If-Match': tag }, to });

function unchange({ before, after, names, tag }, to) {
  const old = (name) => (name === 'categoryId' ? BigInt(before[name]) : (before[name] ?? null));
  const body = json(Object.fromEntries(names.map((name) => [name, old(name)])));
  return call('PATCH', `/pets/${after.id}`, { body, headers: { ...TYPE, 'If-Match': tag }, to, fits: isThis(after.id) });
}

function notUndone(entry, { code, failure, isUnclear }) {
  const isLate = code === 'precondition_failed' || code === 'not_found';
  const first = entry.isUnclear ? ', perhaps by your first Undo' : '';
  // Sent again with the same tag, it is done only once.
  entry.state = isLate ? 'too late' : '';
  entry.isUnclear ||= isUnclear;
  write();
  list();
  if (!isLate) say('bad', 'Not undone: ', ...failure, ...(isUnclear ? [' It is unclear if it was undone.'] : []), ...undoButton(entry));
  else say('bad', 'Not undone: ', named(entry.after), code === 'not_found' ? ' was deleted since' : ' has been changed since', first, '.');
  return false;
}

// The changes of this tab, the last one first.
function list() {
  const mine = entries.filter((entry) => entry.base === base());
  fold.hidden = !mine.length;
  fold.querySelector('summary').textContent = `Your changes (${mine.length})`;
  fold.querySelector('ul').replaceChildren(...(fold.open ? mine.map(line) : []));
}
fold.addEventListener('toggle', list);

function line(entry) {
  const { at, before, after, state } = entry;
  const time = new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  const action = state ? [` (${state})`] : undoButton(entry);
  return element('li', {}, element('time', {}, time), ' ', named(after ?? before), ': ', ...words(entry), ...action);
}

// What a change has changed.
export function words({ kind, before, after, names = [] }) {
  if (kind !== 'changed') return [kind];
  const shown = (pet, name) => (name === 'name' ? shownName(pet.name) : asShown(pet, name) || 'none');
  return names.flatMap((name, i) => [i ? ', ' : '', shown(before, name), ' → ', shown(after, name)]);
}
list();
