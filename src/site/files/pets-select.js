// Several pets at once: check boxes, a range with Shift, and one bar. Each pet is one request in the queue, and those that fail
// stay selected.
import { element } from './elements.js';
import { keep, draftOf } from './pets-drafts.js';
import { at, boxes, petOf } from './pets-list.js';
import { int64, judge, list, mayChange, NO_CATEGORY, part, petsOf, press, say, STATUSES } from './pets-parts.js';
import { remove, saveAll } from './pets-save.js';

const bar = part('chosen');
let selected = new Set();
// The box that was changed last, where a range begins.
let last;
let ask;
// `question` asks before several pets are deleted.
export const whenSeveralAreDeleted = (question) => (ask = question);

const selectedPets = () => [...selected].map(petOf).filter(Boolean);

export function selectNone() {
  selected = new Set();
  showSelection();
}

// Brings the boxes and the bar in line with the selection.
export function showSelection() {
  const all = boxes();
  selected = new Set(all.map(([id]) => id).filter((id) => selected.has(id)));
  for (const [id, box] of all) box.checked = selected.has(id);
  const whole = part('pick-all');
  if (whole) {
    whole.checked = selected.size > 0 && selected.size === all.length;
    whole.indeterminate = selected.size > 0 && !whole.checked;
  }
  bar.hidden = !selected.size;
  if (selected.size) bar.firstElementChild.textContent = `${selected.size} selected`;
}

list.addEventListener('click', ({ target, shiftKey }) => {
  if (target.type !== 'checkbox') return;
  const ids = boxes().map(([id]) => id);
  const { id } = target.closest('tr').dataset;
  for (const one of id ? upTo(id, shiftKey, ids) : ids) {
    if (target.checked) selected.add(one);
    else selected.delete(one);
  }
  last = id;
  showSelection();
});

// The pets that a click selects: one, or with Shift all from the last one.
function upTo(id, isRange, ids) {
  if (!isRange || !ids.includes(last)) return [id];
  const ends = [ids.indexOf(last), ids.indexOf(id)];
  return ids.slice(Math.min(...ends), Math.max(...ends) + 1);
}

// Saves this value for the selected pets. Those that are saved are selected no more.
async function change(name, value) {
  const drafts = selectedPets().map((pet) => {
    keep(pet, at(), name, value);
    return draftOf(pet.id, at());
  });
  const wanted = drafts.filter((draft) => draft?.members[name]);
  for (const pet of selectedPets()) if (!draftOf(pet.id, at())) selected.delete(pet.id);
  if (!wanted.length) say('', 'There is nothing to save.');
  const done = wanted.length ? await saveAll(wanted, [name]) : [];
  wanted.forEach(({ id }, i) => done[i] && selected.delete(id));
  return showSelection();
}

async function removeAll(pets, to) {
  const done = await Promise.all(pets.map((pet) => remove(pet, to)));
  const gone = done.filter(Boolean).length;
  if (pets.length > 1 && gone === pets.length) say('good', `Deleted: ${petsOf(gone)}.`);
  else if (pets.length > 1) say('bad', `${gone} of ${petsOf(pets.length)} deleted. The others were changed meanwhile, or could not be reached.`);
  showSelection();
}

function makeBar() {
  const category = element('input', { inputmode: 'numeric', autocomplete: 'off', 'aria-label': 'Category of the selected pets', placeholder: 'Category' });
  const problem = element('span', { class: 'problem', hidden: '' });
  const form = element('form', { novalidate: '' }, category, ' ', element('button', {}, 'Set'), problem);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const value = int64(category.value);
    if (!judge(category, problem, value === undefined ? NO_CATEGORY : '')) return;
    category.value = '';
    change('categoryId', value);
  });
  const statuses = ['', ...STATUSES].map((status) => press(status || 'no status', () => change('status', status)));
  const deletes = press('Delete…', () => ask(selectedPets(), (pets, to) => removeAll(pets, to)), 'danger-line');
  bar.append(element('b', {}), press('Cancel', selectNone), ...statuses, form, ...(mayChange('deletePet') ? [deletes] : []));
}
makeBar();
