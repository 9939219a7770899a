// What is done with the pets in the table: they are opened, changed, saved, discarded and deleted.
import { element } from './elements.js';
import { allDrafts, discard, draftOf, keep, restore, whenDraftsChange } from './pets-drafts.js';
import { at, draw, linkOf, petOf } from './pets-list.js';
import { inventory, leadFocus, list, named, number, part, petsOf, press, say } from './pets-parts.js';
import { isConflict, isOnItsWay } from './pets-rows.js';
import { remove, save, saveAll, saveMine, takeTheirs } from './pets-save.js';
import { whenSeveralAreDeleted } from './pets-select.js';
import { address, asked } from './pets-view.js';

const dialog = inventory.querySelector('dialog');
const [unsaved, sought] = ['unsaved', 'find-text'].map(part);

// A conflict has choices of its own, in its row.
const savable = () => allDrafts().filter((draft) => !isConflict(draft));
// The line that counts the pets with unsaved changes, wherever they are.
function showUnsaved() {
  const drafts = allDrafts().filter((draft) => !isOnItsWay(draft));
  unsaved.hidden = !drafts.length;
  if (!drafts.length) return;
  const words = drafts.length === 1 ? '1 pet has an unsaved change.' : `${number(drafts.length)} pets have unsaved changes.`;
  const isSame = unsaved.firstChild?.textContent === words && Boolean(unsaved.querySelector('.main')) === savable().length > 0;
  if (isSame) return;
  const discardAll = () => {
    drop(...allDrafts());
    leadFocus(() => sought);
  };
  const saveThem = async () => {
    const some = savable();
    await saveAll(some);
    leadFocus(() => linkOf(some[0].id));
  };
  unsaved.replaceChildren(
    element('span', { role: 'status' }, words),
    ...(savable().length ? [press(drafts.length === 1 ? 'Save' : 'Save all', saveThem, 'main')] : []),
    press(drafts.length === 1 ? 'Discard' : 'Discard all', discardAll),
  );
}
whenDraftsChange(() => {
  draw();
  showUnsaved();
});

// Discards drafts, and offers them back.
function drop(...gone) {
  const putBack = () => {
    gone.forEach(restore);
    say('');
  };
  gone.forEach(discard);
  say('', `Discarded: ${petsOf(gone.length)}. `, press(gone.length === 1 ? 'Put it back' : 'Put them back', putBack));
}

// What the buttons in the rows do.
const ACTS = {
  save: ({ id }) => {
    const draft = draftOf(id, at());
    if (draft) save(draft);
    else say('', 'There is nothing to save.');
  },
  discard: ({ id }) => drop(draftOf(id, at())),
  mine: ({ id }) => saveMine(draftOf(id, at())),
  theirs: ({ id }) => takeTheirs(draftOf(id, at())),
  cancel: (pet) => {
    const draft = draftOf(pet.id, at());
    if (draft) drop(draft);
    close(pet);
  },
  ask: (pet) => ask([pet], ([one], to) => remove(one, to)),
};
const petAround = (part) => {
  const { id, of } = part.closest('tr').dataset;
  return petOf(id ?? of);
};
list.addEventListener('change', ({ target }) => {
  if (target.matches('select')) keep(petAround(target), at(), 'status', target.value);
});
inventory.addEventListener('submit', (event) => {
  const form = event.target.closest('[data-act]');
  if (!form) return;
  event.preventDefault();
  ACTS.save(petAround(form));
});

// Opens a pet or closes it. The page stays where it is.
function toggle(id) {
  history.pushState(history.state, '', address({ ...asked(), id: asked().id === id ? '' : id }));
  draw();
  list.querySelector('.detail .answers')?.scrollIntoView({ block: 'nearest' });
}
function close({ id }) {
  if (asked().id === id) toggle(id);
  leadFocus(() => linkOf(id));
}
inventory.addEventListener('keydown', (event) => {
  const row = event.target.closest('.pets tbody tr');
  if (event.key === 'Escape' && row) close(petAround(row));
});

// Asks before pets are deleted. `act` gets them as they were shown, and where.
function ask(pets, act) {
  const to = at();
  const [cancel, yes] = dialog.querySelectorAll('button');
  const names = pets.slice(0, 10).flatMap((pet, i) => [i ? ', ' : '', named(pet)]);
  const rest = pets.length > 10 ? [`, and ${pets.length - 10} more`] : [];
  dialog.querySelector('p').replaceChildren(...(pets.length > 1 ? [`Delete ${pets.length} pets: `] : ['Delete ']), ...names, ...rest, '?');
  cancel.onclick = () => dialog.close();
  yes.onclick = () => {
    dialog.close();
    act(pets, to);
  };
  dialog.showModal();
}
whenSeveralAreDeleted(ask);

inventory.addEventListener('click', (event) => {
  const { target } = event;
  const act = target.closest('button[data-act]');
  if (act) return act.getAttribute('aria-disabled') === 'true' ? undefined : ACTS[act.dataset.act](petAround(act));
  const link = target.closest('a');
  if (event.ctrlKey || event.metaKey || event.shiftKey) return undefined;
  if (link?.closest('.name')) {
    event.preventDefault();
    return toggle(link.hash.slice(1));
  }
  // The whole row opens its pet.
  const row = target.closest('tr[data-id]');
  const isOther = target.closest('a, button, input, select, label');
  if (row && !isOther && getSelection().isCollapsed) toggle(row.dataset.id);
  return undefined;
});
