// Pets as a table. All its numbers are text, as they are in the JSON: JavaScript would round an int64.
import { UNSEEN, visible } from './colours.js';
import { element } from './elements.js';

// A pet or a list of pets, with its numbers as text.
export const readPets = (json) =>
  JSON.parse(json.replace(/("(?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (token, string) => string ?? `"${token}"`));

// The JSON of a pet.
export const writePet = ({ id, name, categoryId, status }) =>
  `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`;

// A name, which keeps its direction to itself. What cannot be seen in it is escaped.
export function shownName(name) {
  const parts = name.split(UNSEEN).map((part, i) => (i % 2 ? element('span', { class: 'note' }, visible(part)) : part));
  return element('bdi', {}, ...(name ? parts : [element('i', {}, 'no name')]));
}

const LOOKS = { available: 'pill s2', pending: 'pill s4', sold: 'pill' };
export const pill = ({ status }) => element('span', { class: LOOKS[status] ?? 'note' }, status ?? 'none');

// The row of a pet. `page` is the path of the page that its link leads to, and `state` makes the content of its last cell.
export function petRow(pet, page = '', state = pill) {
  const link = element('a', { href: `${page}#${pet.id}` }, shownName(pet.name));
  const cell = (head, kind, content, role = 'cell') => element('td', { role, 'data-head': head, class: kind }, content);
  return element(
    'tr',
    { role: 'row', 'data-id': pet.id },
    cell('Id', 'number', pet.id),
    cell('Name', 'name', link, 'rowheader'),
    cell('Category', 'number', pet.categoryId),
    cell('Status', 'state', state(pet)),
  );
}

export function petTable(pets, ...look) {
  const heads = ['Id', 'Name', 'Category', 'Status'].map((head) => element('th', { role: 'columnheader', scope: 'col' }, head));
  const rows = pets.map((pet) => petRow(pet, ...look));
  return element(
    'table',
    { role: 'table', class: 'pets', 'aria-label': 'Pets' },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
    element('tbody', { role: 'rowgroup' }, ...rows),
  );
}
