// The pets that are shown, and the table that shows them.
import { element } from './elements.js';
import { here } from './pets-api.js';
import { discard, draftOf } from './pets-drafts.js';
import { makeDetail } from './pets-edit.js';
import { leadFocus, list, mayChange, mayWrite } from './pets-parts.js';
import { makeRow, noticeRow } from './pets-rows.js';
import { address, asked } from './pets-view.js';
import { lowered, tableOf, writePet } from './table.js';

let pets = [];
// Where they are from. They are changed there, even if another server was chosen since.
let shownAt = here();
// Pets that stay in the table for now: `deleted`, or `left` if they no longer fit the filter.
let fates = new Map();
// The view that they belong to.
let shownView = asked();
let rows = new Map();
let detail;
let table;
// Whether the table is one for somebody who may change pets.
let isForWriter;

export const shownPets = () => pets;
export const at = () => shownAt;
export const petOf = (id) => pets.find((pet) => pet.id === id);
export const fateOf = (id) => fates.get(id);
export const boxes = () => pets.flatMap(({ id }) => (isForWriter && rows.has(id) && !fates.has(id) ? [[id, rows.get(id).box]] : []));
export const rowOf = (id) => list.querySelector(`tr[data-id="${id}"]`);
export const linkOf = (id) => rowOf(id)?.querySelector('.name a');

// Pets as they were shown when somebody changed them, each with the pet after the change. A change of the same pet that
// waited goes on from there.
const successors = new WeakMap();
export const newest = (pet) => (successors.has(pet) ? newest(successors.get(pet)) : pet);

// Shows the pets of a view in the place of others.
export function show(found, to, view = asked()) {
  shownAt = to;
  shownView = view;
  pets = found;
  fates = new Map();
  draw();
}

// True if a pet belongs into the list that is asked for.
export function fits(pet, { status, categoryId, name }) {
  const lower = (text) => lowered(text).join('');
  const isOfStatus = !status || (pet.status ?? 'unset') === status;
  return isOfStatus && (!categoryId || pet.categoryId === categoryId) && (pet.id === name || lower(pet.name).includes(lower(name)));
}

// Shows a pet as it is now. A change of this page is no news.
export function put(pet, to, isOwn = true) {
  const old = petOf(pet.id);
  if (to.base !== shownAt.base || !old) return;
  if (writePet(old) !== writePet(pet)) {
    if (isOwn) successors.set(old, pet);
    pets = pets.map((one) => (one === old ? pet : one));
  }
  setFate(pet.id, fits(pet, shownView) ? undefined : 'left');
  draw(!isOwn);
}

export function setFate(id, fate) {
  if (fate) fates.set(id, fate);
  else fates.delete(id);
}

// The pets in another order, or more or fewer of them: those that somebody else has added or deleted.
export function replace(found) {
  pets = found;
  for (const id of fates.keys()) if (!petOf(id)) fates.delete(id);
  draw(true);
}

export function drop(id, to) {
  if (to.base !== shownAt.base) return;
  const i = pets.findIndex((pet) => pet.id === id);
  pets = pets.filter((pet) => pet.id !== id);
  const draft = draftOf(id, to);
  if (draft) discard(draft);
  if (asked().id === id) history.replaceState(history.state, '', address({ ...asked(), id: '' }));
  draw();
  leadFocus(() => linkOf((pets[i] ?? pets[i - 1])?.id));
}

// The seconds for which a change of somebody else is marked.
const MARKED_MS = 4_000;
function mark(cells) {
  for (const changed of cells) changed.classList.add('fresh');
  setTimeout(() => cells.forEach((changed) => changed.classList.remove('fresh')), MARKED_MS);
}

// Brings the table in line with the pets, the drafts and the address. Rows that stay are not touched.
export function draw(isNews = false) {
  const focus = focused();
  const view = asked();
  list.hidden = !pets.length;
  if (isForWriter !== mayChange('updatePet')) {
    isForWriter = mayChange('updatePet');
    rows = new Map();
    detail = undefined;
    const first = isForWriter ? [element('th', { role: 'columnheader', scope: 'col', class: 'pick' }, pickAll())] : [];
    table = tableOf([], ...first);
    list.replaceChildren(table);
  }
  const wanted = pets.flatMap((pet) => {
    const draft = draftOf(pet.id, shownAt);
    const isOpen = view.id === pet.id;
    if (!rows.has(pet.id)) rows.set(pet.id, makeRow(pet.id));
    const row = rows.get(pet.id);
    const changed = row.update({ pet, draft, fate: fates.get(pet.id), isOpen, sought: view.name });
    if (isNews && changed) mark(changed);
    return [row.tr, ...noticeOf(draft), ...(isOpen ? [detailOf(pet, draft)] : [])];
  });
  fill(table.tBodies[0], wanted);
  for (const id of rows.keys()) if (!petOf(id)) rows.delete(id);
  if (focus) leadFocus(() => [focus.part, focus.other, 'name'].map((name) => partOf(focus.id, name)).find((found) => found?.checkVisibility()));
}

function pickAll() {
  const box = element('input', { type: 'checkbox', id: 'pick-all', 'aria-label': 'Select all pets of this page' });
  return element('label', {}, box);
}

function noticeOf(draft) {
  if (!draft?.problem) return [];
  draft.problem.tr ??= noticeRow(draft);
  return [draft.problem.tr];
}

function detailOf(pet, draft) {
  if (detail?.id !== pet.id || detail.isForWriter !== mayWrite()) detail = makeDetail(pet.id, at);
  detail.update(pet, draft);
  return detail.tr;
}

// Makes these the rows. Only those that are new are put in, since a row that is moved loses the focus.
function fill(body, wanted) {
  const kept = new Set(wanted);
  for (const row of [...body.children]) if (!kept.has(row)) row.remove();
  wanted.forEach((row, i) => {
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null);
  });
}

// The part of a pet that has the focus.
function focused() {
  const field = document.activeElement;
  const row = list.contains(field) && field.closest('tr');
  return row && { id: row.dataset.id ?? row.dataset.of, part: field.dataset.part, other: row.dataset.id && 'status' };
}
const partOf = (id, name) => name && list.querySelector(`tr:is([data-id="${id}"], [data-of="${id}"]) [data-part="${name}"]`);
