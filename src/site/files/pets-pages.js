// The pages of a view: the way to the others, and which pets of how many this one has.
import { lastPage, pageAfter, pageBefore } from './pets-view.js';
import { totalOf } from './pets-counts.js';
import { canFind, inventory, list, number, part, petsOf, press } from './pets-parts.js';

const pager = inventory.querySelector('.pager');
const [first, previous, next, last] = pager.querySelectorAll('button');
const [place, fresh] = [part('place'), part('fresh')];
let shown = {};
let goTo;
// `act` goes to another view.
export const whenTurned = (act) => (goTo = act);

// The way to the pages around the one with these pets. `from` is the number of pets before them, if that is known.
export function turnPages(view, { found, following, isTurned }) {
  const { trail = [], from } = history.state ?? {};
  const isFirst = !view.after && !view.before;
  shown = { view, length: found.length, from: isFirst ? 0 : from, isTurned, hasMore: Boolean(following) };
  pager.hidden = isFirst && !following;
  last.hidden = !canFind;
  const [head, tail] = [found[0]?.id, found.at(-1)?.id];
  const start = { after: '', before: '' };
  // A page that was asked for from its end knows what is before it, and others what is after.
  const isEnd = view.before === 'last' || view.after === 'first';
  const hasNext = isTurned ? !isEnd : following;
  const hasPrevious = isTurned ? following : !isFirst;
  const limit = Number(view.limit);
  const back = () => {
    if (!canFind) return trail.length ? [{ after: trail.at(-1) }, { trail: trail.slice(0, -1), from: known(shown.from - limit) }] : [start];
    const isStart = !head || shown.from !== undefined && shown.from <= limit;
    return isStart ? [start] : [pageBefore(view, head), { from: known(shown.from - limit) }];
  };
  const on = () => {
    const target = isTurned ? pageAfter(view, tail) : { after: following.after ?? '', before: following.before ?? '' };
    return [target, { trail: [...trail, view.after], from: known(shown.from + found.length) }];
  };
  turnTo(first, !isFirst && (() => [start]));
  turnTo(previous, hasPrevious && back);
  turnTo(next, hasNext && on);
  turnTo(last, hasNext && (() => [lastPage(view)]));
  sayPlace();
}
const known = (offset) => (Number.isInteger(offset) && offset >= 0 ? offset : undefined);

function turnTo(button, target) {
  button.setAttribute('aria-disabled', String(!target));
  button.onclick = async () => {
    if (!target) return;
    await goTo(...target());
    if (list.getBoundingClientRect().top < 0) inventory.scrollIntoView();
  };
}

// Which pets are shown: 21–36 of 36, as far as it is known.
export function sayPlace() {
  const { view, length, isTurned, hasMore } = shown;
  if (!length) return place.replaceChildren();
  const isSought = view.name || view.categoryId;
  const isAll = !hasMore && !isTurned;
  const total = isSought ? undefined : totalOf(view.status);
  const isEnd = view.before === 'last' || view.after === 'first';
  if (isEnd && total !== undefined) shown.from = total - length;
  if (isAll && shown.from === undefined && total !== undefined) shown.from = total - length;
  const { from } = shown;
  if (isSought) place.replaceChildren(isAll && from === 0 ? `${petsOf(length)} found` : `${petsOf(length)} on this page`);
  else if (!Number.isInteger(from) || from < 0 || from >= total) place.replaceChildren(total === undefined ? petsOf(length) : `${number(length)} of ${number(total)}`);
  else place.replaceChildren(`${number(from + 1)}–${number(Math.min(from + length, total ?? Infinity))}${of(total ?? (isAll ? from + length : undefined))}`);
}
const of = (total) => (total === undefined ? '' : ` of ${number(total)}`);

export function clearPlace() {
  shown = {};
  place.replaceChildren();
  fresh.replaceChildren();
  pager.hidden = true;
}

// Until when the page is known to be up to date.
export function sayFresh(isFresh, time) {
  const clock = time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  fresh.textContent = isFresh ? `Up to date · ${clock}` : `Not up to date since ${clock}`;
  fresh.classList.toggle('late', !isFresh);
}

// Offers to show what is held back because somebody is in the table.
export function offerNews(words, act) {
  fresh.replaceChildren(press(words, act));
}

