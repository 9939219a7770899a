// The numbers next to the filters, if the service counts, and how old they are.
import { element } from './elements.js';
import { token } from './key.js';
import { call, here, isCounts, isHere, tagOf } from './pets-api.js';
import { can, inventory, number, part } from './pets-parts.js';
import { asked } from './pets-view.js';
import { readPets } from './table.js';

export const filters = [...inventory.querySelectorAll('.filters a')];
export const statusOf = (link) => new URL(link.href).searchParams.get('status') ?? '';
const listeners = [];
export const whenCounted = (listener) => listeners.push(listener);

// The last counts, where they are from, and the time until which the service has no newer ones.
let counts;
let tag;
let counted = {};
let freshUntil = 0;

// The number of pets with a status, as far as it is known.
export function totalOf(status) {
  return counts && isHere(counted) ? Number(counts[status || 'total']) : undefined;
}

export function forgetCounts() {
  counts = undefined;
  tag = undefined;
  recordedAt = undefined;
  part('sold').textContent = '';
  showCounts();
}

// Counts again. `isDue` is false for a count that may be skipped if the last one is not old.
export async function count(isDue = true) {
  if (!can('getInventory') || !token()) return;
  if (isRecorded()) countSales();
  if (!isDue && Date.now() < freshUntil && isHere(counted)) return;
  const to = here();
  const headers = tag && isHere(counted) ? { 'If-None-Match': tag } : {};
  const answer = await call('GET', '/store/inventory', { to, headers, fits: isCounts });
  if (answer.failure || !isHere(to)) return;
  freshUntil = Date.now() + Number(answer.response.headers.get('Age') ?? 0) * 1_000;
  if (answer.response.status === 304) return;
  counts = readPets(answer.text);
  tag = tagOf(answer);
  counted = to;
  const wasRecorded = isRecorded();
  recordedAt = can('listChanges') && answer.response.headers.has('Link') ? to : undefined;
  if (isRecorded() && !wasRecorded) countSales();
  showCounts();
}

// Where changes are recorded: the counts have a link to them.
let recordedAt;
export const isRecorded = () => Boolean(recordedAt && isHere(recordedAt));

// Counts what was sold this month, where changes are recorded.
async function countSales() {
  const { countSold } = await import('./pets-sold.js');
  if (isRecorded()) await countSold(recordedAt);
}

// Shows them, unless they would stand beside a search, which they know nothing of.
export function showCounts() {
  const { name, categoryId } = asked();
  for (const link of filters) {
    const total = name || categoryId ? undefined : totalOf(statusOf(link));
    link.replaceChildren(link.firstChild, ...(total === undefined ? [] : [' ', element('span', {}, number(total))]));
  }
  for (const listener of listeners) listener();
}
