// Keeps the page up to date while it is seen: what others do arrives, is marked for a moment and told once. Nothing moves under
// the mouse or the focus.
import { call, epoch, isBusy, isHere, isList } from './pets-api.js';
import { count } from './pets-counts.js';
import { findPage } from './pets-find.js';
import { draw, fateOf, fits, put, replace, setFate, shownPets } from './pets-list.js';
import { offerNews, sayFresh, turnPages } from './pets-pages.js';
import { list, named, part, petsOf } from './pets-parts.js';
import { before } from './pets-view.js';
import { readPets, writePet } from './table.js';

// The time between two looks, for each request that a page takes.
const EVERY_MS = 5_000;
// How long news is told, and not told again.
const TOLD_MS = 60_000;
const news = part('news');

// The page that is watched: its view, its service, and its requests with their tags.
let watched;
let isLooking = false;
let timer;
let seen = new Date();
let refused;
let shown;
let reload;
// `whenRefused` is called if the key works no longer, and `whenShown` after rows have come or gone.
export function whenWatched(whenRefused, whenShown, load) {
  [refused, shown, reload] = [whenRefused, whenShown, load];
}

export function watch(view, to, page) {
  watched = { view, to, requests: page.requests, most: page.isStopped ? page.requests.length : Infinity };
  news.textContent = '';
  saw();
  schedule();
}

export function unwatch() {
  watched = undefined;
  clearTimeout(timer);
}

function saw() {
  seen = new Date();
  sayFresh(true, seen);
}

function schedule() {
  clearTimeout(timer);
  if (watched) timer = setTimeout(look, EVERY_MS * watched.requests.length);
}

async function look() {
  const mine = watched;
  if (!mine || isLooking || document.hidden) return;
  isLooking = true;
  const mark = epoch();
  const isCurrent = () => watched === mine && epoch() === mark && !isBusy() && isHere(mine.to);
  try {
    if (isCurrent()) await compare(mine, isCurrent);
  } finally {
    isLooking = false;
    schedule();
  }
}

async function compare(mine, isCurrent) {
  const { view, to, requests } = mine;
  count(false);
  for (const { path, tag } of requests) {
    const answer = await call('GET', path, { to, headers: tag ? { 'If-None-Match': tag } : {}, fits: isList });
    if (!isCurrent()) return undefined;
    if (answer.failure) return fail(answer);
    if (answer.response.status === 304) continue;
    const page = await findPage(view, to, isCurrent, undefined, mine.most);
    if (!page) return undefined;
    if (page.failure) return fail(page);
    return settle(page, mine, isCurrent);
  }
  if (!mine.heldBack) return saw();
  return isInUse() ? undefined : mine.heldBack();
}

function fail({ response }) {
  if ([401, 403].includes(response?.status)) return refused();
  return watched.heldBack ? undefined : lose();
}

// Says since when the page is out of date.
export const lose = () => sayFresh(false, seen);

async function settle(page, mine, isCurrent) {
  const { to } = mine;
  const found = new Map(page.found.map((pet) => [pet.id, pet]));
  const old = shownPets();
  const missing = old.filter(({ id }) => !found.has(id) && !fateOf(id));
  const fates = await Promise.all(missing.map(({ id }) => find(id, to)));
  if (!isCurrent()) return;
  // From now on, only later news is news.
  mine.requests = page.requests;
  const changed = [];
  for (const pet of old) {
    const now = found.get(pet.id);
    if (!now || writePet(now) === writePet(pet)) continue;
    changed.push(now);
    put(now, to, false);
  }
  missing.forEach((shownPet, i) => {
    const { pet, isGone } = fates[i];
    if (isGone || (pet && !fits(pet, mine.view))) changed.push(pet ?? shownPet);
    if (isGone) setFate(shownPet.id, 'deleted');
    else if (pet) put(pet, to, false);
  });
  draw(true);
  tell(changed);
  arrange(page, mine);
}

// What became of a pet that is no longer on its page.
async function find(id, to) {
  const answer = await call('GET', `/pets?after=${before(id)}&limit=1`, { to, fits: isList });
  if (answer.failure) return {};
  const [pet] = readPets(answer.text);
  return pet?.id === id ? { pet } : { isGone: true };
}

// Puts rows in and takes rows away, unless somebody is in the table. A pet that no longer fits stays, greyed, in its place.
function arrange(page, mine) {
  const { found } = page;
  const wanted = [...found];
  const ids = new Set(found.map(({ id }) => id));
  shownPets().forEach((pet, i, all) => {
    if (ids.has(pet.id) || !fateOf(pet.id)) return;
    const previous = all.slice(0, i).findLast(({ id }) => ids.has(id));
    wanted.splice(wanted.findIndex(({ id }) => id === previous?.id) + 1, 0, pet);
    ids.add(pet.id);
  });
  const shownIds = shownPets().map(({ id }) => id);
  const isSame = wanted.length === shownIds.length && wanted.every(({ id }, i) => id === shownIds[i]);
  const began = epoch();
  const apply = () => {
    if (watched !== mine) return undefined;
    // What was changed here since is missing in it.
    if (epoch() !== began) return reload();
    mine.heldBack = undefined;
    turnPages(mine.view, page);
    replace(wanted.map((pet) => shownPets().find((one) => one.id === pet.id) ?? pet));
    shown();
    return saw();
  };
  if (isSame || !isInUse()) return apply();
  mine.heldBack = apply;
  const added = wanted.filter(({ id }) => !shownIds.includes(id)).length;
  return offerNews(added ? `Show ${petsOf(added)} more` : 'Show the page as it is now', apply);
}

const isInUse = () => (matchMedia('(hover: hover)').matches && list.matches(':hover')) || list.contains(document.activeElement);

// The most pets that are named in one sentence.
const MOST_NAMED = 3;
let told = 0;
function tell(changed) {
  if (!changed.length || Date.now() - told < TOLD_MS) return;
  told = Date.now();
  const names = changed.slice(0, MOST_NAMED).flatMap((pet, i) => [i ? ', ' : ' ', named(pet)]);
  const more = changed.length > MOST_NAMED ? [`, and ${changed.length - MOST_NAMED} more`] : [];
  news.replaceChildren('Changed by others:', ...names, ...more, '.');
  setTimeout(() => news.replaceChildren(), TOLD_MS);
}

for (const event of ['visibilitychange', 'focus']) addEventListener(event, look);
