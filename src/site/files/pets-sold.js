// The number of pets that were sold this month, next to the other counts.
import { call, isChanges, isHere } from './pets-api.js';
import { number, part } from './pets-parts.js';
import { nextPage } from './request.js';
import { readPets } from './table.js';

// The most requests of a hundred changes each.
const MOST = 30;
// The ids of the pets up to the change with the id `last`, and where they are from.
let sold;

// What a change does to the pets that were sold: one that is put back is not among them.
function apply(ids, { petId, before, pet }) {
  const [was, is] = [before, pet].map((it) => it?.status === 'sold');
  if (is && !was) ids.add(petId);
  if (pet && was && !is) ids.delete(petId);
}

// Counts what was sold since the last time, or since the month began.
export async function countSold(to) {
  const now = new Date();
  const month = new Date(now.getFullYear(), now.getMonth()).toISOString();
  const isSame = sold && sold.month === month && isHere(sold.to);
  const next = isSame ? { ...sold } : { to, month, ids: new Set() };
  const all = [];
  const isFirst = !next.last;
  let query = isFirst ? { since: month, order: 'desc' } : { after: next.last };
  for (let i = 0; query && i < MOST; i += 1) {
    const answer = await call('GET', `/changes?${new URLSearchParams({ limit: 100, ...query })}`, { to, fits: isChanges });
    if (!isHere(to)) return;
    // After a restore, it is counted anew.
    if (answer.code === 'changes_gone') sold = undefined;
    if (answer.failure) return;
    const changes = readPets(answer.text);
    all.push(...changes);
    if (!isFirst || !next.last) next.last = changes.at(isFirst ? 0 : -1)?.id ?? next.last;
    // After a page that is not full, only earlier months follow.
    const following = changes.length === 100 && nextPage(answer.response);
    query = following && (following.has('after') || following.has('before')) ? Object.fromEntries(following) : undefined;
  }
  if (isFirst) all.reverse();
  for (const change of all) apply(next.ids, change);
  next.isMore ||= Boolean(isFirst && query);
  sold = next;
  part('sold').textContent = `Sold this month: ${next.isMore ? 'more than ' : ''}${number(next.ids.size)}`;
}
