// What has happened to an open pet: who has changed it and when. An earlier state can be put back.
import { element } from './elements.js';
import { call, isChanges } from './pets-api.js';
import { asShown, draftOf, keep, MEMBERS } from './pets-drafts.js';
import { mayChange, press, say } from './pets-parts.js';
import { save } from './pets-save.js';
import { words } from './pets-undo.js';
import { readPets } from './table.js';

// Fills a list with the last changes of a pet.
export async function tellHistory(ul, pet, to) {
  const answer = await call('GET', `/changes?petId=${pet.id}&order=desc`, { to, fits: isChanges });
  const lines = answer.failure ? [element('li', {}, ...answer.failure)] : readPets(answer.text).map((change) => line(change, pet, to));
  ul.replaceChildren(...(lines.length ? lines : [element('li', {}, 'Nothing since changes are recorded.')]));
}

function line({ at, kind, key, before, pet: after }, pet, to) {
  const time = new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
  const names = before && after ? MEMBERS.filter((name) => before[name] !== after[name]) : [];
  const told = kind === 'updated' ? words({ kind: 'changed', before, after, names }) : [kind];
  const who = key ? [' by ', element('b', {}, key)] : [];
  const isOther = names.some((name) => asShown(before, name) !== asShown(pet, name));
  const button = isOther && mayChange('updatePet') ? [' ', press('Put it back', () => putBack(pet, before, names, to))] : [];
  return element('li', {}, element('time', { datetime: at }, time), ...who, ': ', ...told, ...button);
}

// Gives members of a pet the values that they had before a change.
function putBack(pet, before, names, to) {
  if (draftOf(pet.id, to)) return say('bad', 'Nothing was changed: first save or discard your own change of this pet.');
  for (const name of names) keep(pet, to, name, asShown(before, name));
  return save(draftOf(pet.id, to));
}
