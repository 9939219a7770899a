// Pets as a table. All its numbers are text, as they are in the JSON: JavaScript would round an int64.
import { UNSEEN, visible } from './colours.js';
import { element } from './elements.js';

// A pet or a list of pets, with its numbers as text.
export const readPets = (json) =>
  JSON.parse(json.replace(/("(?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (token, string) => string ?? `"${token}"`));

// The JSON of a pet.
export const writePet = ({ id, name, categoryId, status }) =>
  `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`;

// The most characters of a name in a table: a client chose its length, and every one costs the browser time.
const MOST = 200;

// A name, which keeps its direction to itself. What cannot be seen in it is escaped, and the text that was looked for marked.
export function shownName(name, sought = '') {
  // A character has at most two code units.
  const shown = [...name.slice(0, 2 * MOST)].slice(0, MOST).join('');
  const isBlank = !shown.replace(UNSEEN, '?').trim();
  if (isBlank) return element('bdi', {}, element('i', {}, 'no name'));
  const parts = shown.split(UNSEEN).flatMap((part, i) => (i % 2 ? element('span', { class: 'note' }, visible(part)) : marked(part, sought)));
  return element('bdi', {}, ...parts, shown.length < name.length ? '…' : '');
}

// The characters of a text in lower case, each by itself, as the service compares them.
export const lowered = (text) => Array.from(text, (character) => character.toLowerCase());

// A text whose first match is marked.
function marked(text, sought) {
  const characters = [...text];
  const lower = lowered(text);
  const wanted = lowered(sought).join('');
  const found = wanted ? lower.join('').indexOf(wanted) : -1;
  if (found < 0) return [text];
  // One character may be two in lower case.
  const at = (length) => {
    let i = 0;
    for (let passed = 0; passed < length; i += 1) passed += lower[i].length;
    return i;
  };
  const [start, end] = [at(found), at(found + wanted.length)];
  const piece = (...range) => characters.slice(...range).join('');
  return [piece(0, start), element('mark', {}, piece(start, end)), piece(end)];
}

const LOOKS = { available: 'pill s2', pending: 'pill s4', sold: 'pill' };
export const lookOf = (status) => LOOKS[status] ?? 'note';
export const pill = ({ status }) => element('span', { class: lookOf(status) }, status ?? 'none');

// A cell. On a phone, which has no heads, its head stands before it.
export const cell = (head, kind, role, ...content) => element('td', { role, 'data-head': head, class: kind }, ...content);

// The row of a pet. `page` is the path of the page that its link leads to.
function petRow(pet, page) {
  const link = element('a', { href: `${page}#${pet.id}` }, shownName(pet.name));
  return element(
    'tr',
    { role: 'row', 'data-id': pet.id },
    cell('Name', 'name', 'rowheader', link),
    cell('Category', 'number', 'cell', pet.categoryId),
    cell('Status', 'state', 'cell', pill(pet)),
    cell('Id', 'number', 'cell', pet.id),
  );
}

// The table around rows. `first` is a head before the others.
export function tableOf(rows, ...first) {
  const heads = ['Name', 'Category', 'Status', 'Id'].map((head) => element('th', { role: 'columnheader', scope: 'col' }, head));
  return element(
    'table',
    { role: 'table', class: 'pets', 'aria-label': 'Pets' },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...first, ...heads)),
    element('tbody', { role: 'rowgroup' }, ...rows),
  );
}

export const petTable = (pets, page) => tableOf(pets.map((pet) => petRow(pet, page)));
