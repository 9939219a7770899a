// The key on the pets page: one line as long as it works, and the whole form otherwise.
import { canWrite, check, hide, put, token, verdict, whenReleased } from './key.js';
import { leadFocus, part } from './pets-parts.js';

const [line, field] = ['key-line', 'key'].map(part);
const section = field.closest('.key');
// Whether somebody is changing the key, and whether it was entered since the form got the focus.
let isOpen = false;
let isEntered = false;
// A key that the tab has kept, or that has worked, is taken to work until it is known.
let isKept = Boolean(token());
// The last key that was one line: Escape brings it back.
let last = '';
// Whether the service has refused the key meanwhile.
let isRefused = false;

// Shows the line if the key works as far as is known, or was refused while nobody had asked for anything.
export const settleKey = () => whenReleased(settle);
function settle() {
  const now = verdict();
  const hadFocus = section.contains(document.activeElement);
  const isUsed = hadFocus && !isEntered;
  const isFolded = !isOpen && !isUsed && (now === 'fine' || (isKept && token() && now === undefined));
  section.classList.toggle('folded', isFolded);
  line.hidden = !isFolded;
  if (isFolded) [last, isKept] = [token(), true];
  if (isFolded) hide();
  if (now) isRefused = false;
  line.classList.toggle('fine', now === 'fine');
  const known = canWrite() === false ? 'Read-only key' : 'Key may change pets';
  line.firstElementChild.textContent = isRefused ? 'This key no longer works' : now === 'fine' ? known : 'Checking the key…';
  if (isFolded && hadFocus) leadFocus(() => part('key-change'));
}

// Shows the form again, with the cursor in it unless somebody is elsewhere.
function openKey() {
  isOpen = true;
  settle();
  leadFocus(() => field);
}

// The service has refused the key. Nothing moves if that was found in the background.
export function refuseKey(isAsked) {
  isRefused = true;
  if (isAsked) whenReleased(openKey);
  else settleKey();
}

section.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !last) return;
  [isOpen, isEntered, isKept] = [false, true, true];
  put(last);
  check();
});
section.addEventListener('focusin', () => {
  isEntered = false;
});
section.addEventListener('focusout', ({ relatedTarget }) => {
  if (!section.contains(relatedTarget)) isOpen = false;
  setTimeout(settleKey);
});
part('key-clear').addEventListener('click', () => {
  last = '';
});
part('key-change').addEventListener('click', () => {
  openKey();
  field.focus();
  field.select();
});
field.addEventListener('input', () => {
  isOpen = true;
  isEntered = false;
  isKept = false;
  isRefused = false;
});
for (const [source, event] of [[part('key-form'), 'submit'], [field, 'change']]) {
  source.addEventListener(event, () => {
    isOpen = false;
    isEntered = event === 'submit';
    settleKey();
  });
}
settleKey();
