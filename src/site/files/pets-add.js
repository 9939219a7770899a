// The form that adds pets. It is empty and has the focus again at once, so that the next pet can be typed while this one is on
// its way.
import { element } from './elements.js';
import { token } from './key.js';
import { call, here, inTurn, isHere, json, tagOf } from './pets-api.js';
import { canFind, elsewhere, int64, judge, leadFocus, list, mayWrite, named, NO_CATEGORY, part, press, say } from './pets-parts.js';
import { isNewest, record, undoButton } from './pets-undo.js';
import { freshKey } from './request.js';
import { readPets, shownName } from './table.js';

const [adder, opener, unadded] = ['add', 'add-open', 'unadded'].map(part);
const [name, category, status] = ['name', 'category', 'status'].map((field) => part(`add-${field}`));
const told = ['name', 'category'].map((field) => part(`add-${field}-problem`));

export const hasUnadded = () => unadded.children.length > 0 || name.value !== '';
export const isAdding = () => adding > 0;

// Offers only what the key permits.
export function offer() {
  opener.hidden = !token() || !mayWrite();
  adder.hidden ||= opener.hidden;
  opener.setAttribute('aria-expanded', String(!adder.hidden));
}

export function openAdder() {
  adder.hidden = false;
  offer();
  name.focus();
}
function closeAdder() {
  adder.hidden = true;
  offer();
  leadFocus(() => opener);
}
opener.addEventListener('click', () => (adder.hidden ? openAdder() : closeAdder()));
adder.addEventListener('keydown', (event) => event.key === 'Escape' && closeAdder());

// The number of pets that are on their way or wait for their turn.
let adding = 0;
let load;
let showNewest;
// What is done after the last of them, and what leads to them.
export function whenAdded(reload, newest) {
  [load, showNewest] = [reload, newest];
}

// Adds a pet that was taken from the form. Sent again, it has the same idempotency key, which the service knows together
// with the API key: so a pet that may have been added goes where it went before.
function add(pet) {
  adding += 1;
  say('', adding === 1 ? 'Adding…' : `Adding ${adding} pets…`);
  const goal = here();
  const sent = inTurn(async () => {
    if (!pet.isUnclear) pet.to = goal;
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': pet.onceKey };
    const answer = await call('POST', '/pets', { body: pet.body, headers, to: pet.to });
    adding -= 1;
    // A later failure does not say what became of an earlier try.
    pet.isUnclear ||= answer.isUnclear;
    if (answer.failure) keepUnadded(pet, answer);
    return answer;
  });
  sent.then(async (answer) => {
    const isAdded = answer && !answer.failure;
    const entry = isAdded && record({ kind: 'added', after: readPets(answer.text), tag: tagOf(answer), to: pet.to });
    // The list is drawn once, after the last of them. What is sent next does not wait for it, and may be told before.
    if (!adding) await load();
    if (isAdded && isNewest(entry)) sayAdded(answer, entry, pet.to);
  });
}

function sayAdded(answer, entry, to) {
  const pet = entry.after;
  const isReplayed = answer.response.headers.has('Idempotency-Replayed');
  const more = adding ? `. ${adding} more to add…` : '.';
  const isOld = list.classList.contains('old') ? [' The list could not be read again.'] : [];
  const link = isHere(to) ? element('a', { href: `#${pet.id}` }, named(pet)) : named(pet);
  const newest = canFind && isHere(to) ? [' ', press('Show the newest', showNewest)] : [];
  say('good', isReplayed ? 'Already added, and only once: ' : 'Added: ', link, ...elsewhere(to), more, ...isOld, ...undoButton(entry), ...newest);
}

// Keeps a pet under the form, with the reason why it was not added, until it is sent again or back in the form.
function keepUnadded(pet, { failure }) {
  const { isUnclear } = pet;
  const why = isUnclear ? 'It is unclear if it was added. Try again within a day: it is added only once.' : 'It was not added.';
  const line = element('li', {}, shownName(pet.name), ': ', ...failure, ` ${why} `);
  const again = press('Try again', () => {
    line.remove();
    add(pet);
    name.focus();
  });
  const back = press('Put it back into the form', () => {
    if (!token() || !mayWrite()) return say('bad', 'First enter an API key that can add pets.');
    openAdder();
    if (name.value) return say('bad', 'There is another pet in the form. Add that one first.');
    [name.value, category.value, status.value] = [pet.name, pet.category, pet.status];
    return line.remove();
  });
  const forget = press('Remove it from this list', () => line.remove());
  line.append(again, ' ', ...(isUnclear ? [] : [back, ' ']), forget);
  unadded.append(line);
}

const isNamed = () => judge(name, told[0], name.value ? '' : 'Enter a name.');
const isNumbered = () => judge(category, told[1], int64(category.value) === undefined ? NO_CATEGORY : '');
for (const [field, isRight] of [[name, isNamed], [category, isNumbered]]) {
  field.addEventListener('input', () => field.hasAttribute('aria-invalid') && isRight());
}

adder.addEventListener('submit', (event) => {
  event.preventDefault();
  const wrong = [[name, isNamed()], [category, isNumbered()]].find(([, isRight]) => !isRight);
  if (wrong) return wrong[0].focus();
  const body = json({ name: name.value, categoryId: BigInt(category.value), ...(status.value && { status: status.value }) });
  add({ body, onceKey: freshKey(), name: name.value, category: category.value, status: status.value });
  name.value = '';
  return name.focus();
});
