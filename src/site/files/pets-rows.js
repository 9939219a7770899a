// The rows of the table. The row of a pet is made once and then filled again, so that nothing moves under the mouse, and no
// field loses the focus or its text.
import { element } from './elements.js';
import { asShown, valueOf, WORDS } from './pets-drafts.js';
import { mayChange, rowButton, STATUSES } from './pets-parts.js';
import { cell, lookOf, pill, shownName } from './table.js';

// A value of a member in a sentence.
const told = (name, value) => (name === 'name' ? element('span', {}, '“', shownName(value), '”') : value || 'none');

// The row of a pet. `update` fills it with what is known; `isNew` marks what somebody else has changed.
export function makeRow(id) {
  const link = element('a', { href: `#${id}`, 'data-part': 'name' });
  const box = element('input', { type: 'checkbox', 'data-part': 'pick' });
  const [name, category] = [cell('Name', 'name', 'rowheader', link), cell('Category', 'number category', 'cell')];
  const state = stateCell(id);
  const cells = [name, category, state.cell, cell('Id', 'number id', 'cell', id)];
  const isPicked = mayChange('updatePet');
  if (isPicked) cells.unshift(element('td', { role: 'cell', class: 'pick' }, element('label', {}, box)));
  const tr = element('tr', { role: 'row', 'data-id': id }, ...cells);
  let last = [];

  function update({ pet, draft, fate, isOpen, sought }) {
    const now = [pet, draft, draft?.version, fate, isOpen, sought];
    if (now.every((value, i) => value === last[i])) return;
    const before = last[0];
    last = now;
    box.setAttribute('aria-label', `Select pet ${id}`);
    link.replaceChildren(shownName(pet.name, sought));
    link.setAttribute('aria-expanded', String(isOpen));
    const mine = draft?.members;
    name.replaceChildren(link, ...(mine?.name ? [element('span', { class: 'mine' }, '→ ', shownName(mine.name.mine))] : []));
    category.replaceChildren(pet.categoryId, ...(mine?.categoryId ? [element('span', { class: 'mine' }, ` → ${mine.categoryId.mine}`)] : []));
    state.update(pet, draft, fate);
    tr.classList.toggle('draft', Boolean(draft));
    tr.classList.toggle('failed', Boolean(draft?.problem));
    tr.classList.toggle('gone', Boolean(fate));
    tr.classList.toggle('deleted', fate === 'deleted');
    const changes = before ? Object.entries({ name, categoryId: category, status: state.cell }) : [];
    return changes.filter(([member]) => asShown(before, member) !== asShown(pet, member)).map(([, changed]) => changed);
  }
  return { tr, update, box };
}

// The status: a choice if it can be changed. Nothing is sent before Save, since a key press chooses too. A phone shows it as a
// word; the choice is in the open pet.
function stateCell(id) {
  const place = cell('Status', 'state', 'cell');
  if (!mayChange('updatePet')) {
    return { cell: place, update: (pet, _, fate) => place.replaceChildren(pill(pet), ...fateOf(fate)) };
  }
  const options = ['', ...STATUSES].map((value) => element('option', { value }, value || 'none'));
  const select = element('select', { 'aria-label': `Status of pet ${id}`, 'data-part': 'status' }, ...options);
  const word = element('span', {});
  const stored = element('span', { class: 'stored' });
  const [save, discard] = [rowButton('Save', 'save', 'main'), rowButton('Discard', 'discard')];
  save.dataset.part = 'save';
  const note = element('span', { class: 'note' });
  place.append(element('div', {}, stored, select, word, save, discard, note));
  function update(pet, draft, fate) {
    const value = valueOf(pet, draft, 'status');
    const mine = draft?.members.status;
    const isChanged = Boolean(mine) && value !== asShown(pet, 'status');
    select.value = value;
    select.className = mine ? 'pill draft' : value ? lookOf(value) : 'pill';
    word.className = `word ${select.className}`;
    word.textContent = value || 'none';
    stored.textContent = isChanged ? (pet.status ?? 'none') : '';
    // A conflict has choices of its own.
    for (const button of [save, discard]) button.hidden = !draft || isConflict(draft);
    const isSent = isOnItsWay(draft);
    save.textContent = isSent ? 'Saving…' : 'Save';
    save.setAttribute('aria-disabled', String(isSent));
    note.replaceChildren(...fateOf(fate));
  }
  return { cell: place, update };
}

// True if all of a draft is being saved; what is typed after that can be saved again.
export const isOnItsWay = (draft) =>
  Boolean(draft?.waiting) && Object.entries(draft.members).every(([name, { mine }]) => draft.sent[name] === mine);

export const isConflict = (draft) => Boolean(draft?.problem?.theirs);

const fateOf = (fate) => (fate ? [{ deleted: 'deleted', left: 'no longer in this list' }[fate]] : []);

// The row under a pet that says why a draft is not saved, and what can be done.
export function noticeRow({ id, problem, members }) {
  const { theirs, names = [], words = [] } = problem;
  const conflicts = names.flatMap((name) => {
    const { seen, mine } = members[name];
    return [`Meanwhile somebody changed the ${WORDS[name]}: `, told(name, seen), ' → ', told(name, asShown(theirs, name)), '. Yours is ', told(name, mine), '. '];
  });
  const buttons = theirs ? [rowButton('Save mine', 'mine'), ' ', rowButton('Take theirs', 'theirs')] : [rowButton('Try again', 'save'), ' ', rowButton('Discard', 'discard')];
  const text = theirs ? conflicts : ['Not saved. ', ...words, ' '];
  return element('tr', { role: 'row', class: 'notice', 'data-of': id }, element('td', { role: 'cell', colspan: '5' }, ...text, ...buttons));
}
