// What the files of the pets page share: its parts, its sentences, and what the service and the key allow.
import { element } from './elements.js';
import { base, canWrite } from './key.js';
import { shownName } from './table.js';

export const inventory = document.getElementById('inventory');
export const list = inventory.querySelector('.table');
export const part = (id) => document.getElementById(id);
const state = part('state');

export const STATUSES = ['available', 'pending', 'sold'];
// The operations of this service, and the search; some need a flag.
export const can = (operation) => inventory.dataset.operations.split(' ').includes(operation);
export const canFind = inventory.dataset.find === 'true';
// As long as it is not known, a key may write.
export const mayWrite = () => canWrite() !== false;
export const mayChange = (operation) => can(operation) && mayWrite();

// Shows a sentence above the table. `look` is its class.
export function say(look, ...parts) {
  state.className = look;
  state.replaceChildren(...parts);
}

export function press(words, act, kind = '') {
  const button = element('button', { type: 'button', class: kind }, words);
  button.addEventListener('click', act);
  return button;
}

// A button in a row of the table. pets.js knows what each `act` does.
export const rowButton = (words, act, kind = '') => element('button', { type: 'button', class: kind, 'data-act': act }, words);

export const named = ({ id, name }) => element('span', {}, `pet ${id}, `, shownName(name));

// Names the server of a change, if the page has turned to another one.
export const elsewhere = (to) => (to.base === base() ? [] : [` on ${new URL(to.base, location.href).href}`]);

export const number = (count) => Number(count).toLocaleString('en');
export const petsOf = (count) => (count === 1 ? '1 pet' : `${number(count)} pets`);

// An int64 as the service writes it, 7 for 007; undefined if the text is none.
export function int64(text) {
  if (!/^\s*-?\d{1,30}\s*$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? String(value) : undefined;
}

// Says at a field what it takes, or takes that back. `told` is the element for it.
export function judge(field, told, problem = '') {
  told.textContent = problem;
  told.hidden = !problem;
  if (problem) field.setAttribute('aria-invalid', 'true');
  else field.removeAttribute('aria-invalid');
  return !problem;
}
export const NO_CATEGORY = 'A category is a number, such as 3.';

// The one rule for the focus: it goes where this function says only if nobody else has it.
export function leadFocus(find) {
  const now = document.activeElement;
  const isFree = !now || now === document.body || !now.isConnected || !now.checkVisibility();
  if (isFree) find()?.focus({ preventScroll: true });
}
