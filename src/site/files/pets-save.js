// Changes and deletes pets that are shown, each with If-Match: nobody overwrites what somebody else did. What does not touch
// is merged; what does is a conflict that a person decides.
import { call, here, inTurn, isThis, json, tagOf, TYPE } from './pets-api.js';
import { asShown, discard, isKept, MEMBERS, settle, WORDS } from './pets-drafts.js';
import { drop, newest, petOf, put } from './pets-list.js';
import { elsewhere, int64, list, named, NO_CATEGORY, petsOf, say } from './pets-parts.js';
import { record, undoButton } from './pets-undo.js';
import { readPets, shownName } from './table.js';

// How often a change begins again because the pet was changed in between.
const MOST_TRIES = 3;

// A value of a draft as the service has it: 7 for 007. Undefined if it is none.
const exact = (name, value) => (name === 'categoryId' ? int64(value) : value);
const written = (name, value) => {
  if (name === 'categoryId') return BigInt(value);
  return name === 'status' ? value || null : value;
};

// Saves members of a draft, and says so. Returns what can be undone; nothing if they are not saved.
export async function save(draft, names) {
  say('', 'Saving…');
  const done = await inQueue(draft, names);
  if (!done) return undefined;
  const { now, wanted, others, to, entry } = done;
  const state = now.status ? `is now ${now.status}` : 'has no status now';
  const merged = others.length ? ` Somebody else has changed its ${others.map((name) => WORDS[name]).join(' and ')} meanwhile.` : '';
  say('good', 'Done: ', named(now), ' ', 'status' in wanted ? state : 'is saved', ...elsewhere(to), '.', merged, ...undoButton(entry));
  return done;
}

// Saves several drafts, one request each. Returns what became of each.
export async function saveAll(drafts, names) {
  if (drafts.length === 1) return [await save(drafts[0], names)];
  say('', `Saving ${petsOf(drafts.length)}…`);
  const all = await Promise.all(drafts.map((draft) => inQueue(draft, names)));
  const saved = all.filter(Boolean);
  const undo = undoButton(...saved.map(({ entry }) => entry));
  // Without those that were discarded meanwhile.
  const wanted = drafts.filter((draft, i) => all[i] || isKept(draft));
  if (saved.length < wanted.length) say('bad', `${saved.length} of ${wanted.length} pets saved. The others are marked in the table.`, ...undo);
  else if (saved.length) say('good', `Done: ${petsOf(saved.length)} saved.`, ...undo);
  return all;
}

async function inQueue(draft, names = Object.keys(draft.members)) {
  const typed = {};
  for (const name of names) if (draft.members[name]) typed[name] = draft.members[name].mine;
  const wanted = Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, exact(name, value)]));
  if (Object.values(wanted).includes(undefined)) return failed(draft, NO_CATEGORY);
  draft.sent = typed;
  draft.waiting += 1;
  draft.problem = null;
  settle(draft);
  return inTurn(async () => {
    const done = await patch(draft, wanted);
    draft.waiting -= 1;
    if (done) keepRest(draft, typed, done.now);
    // Unless it was discarded meanwhile.
    if (isKept(draft)) settle(draft);
    return done;
  });
}

// What was typed after Save stays a draft.
function keepRest(draft, typed, now) {
  for (const [name, value] of Object.entries(typed)) {
    const member = draft.members[name];
    if (!member) continue;
    member.seen = asShown(now, name);
    if (member.mine === value || exact(name, member.mine) === member.seen) delete draft.members[name];
  }
}

async function patch(draft, wanted) {
  // The key may have been changed since the draft was begun.
  const to = draft.to.base === here().base ? here() : draft.to;
  const [path, fits] = [`/pets/${draft.id}`, isThis(draft.id)];
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const current = await call('GET', path, { to, fits });
    // Discarded meanwhile; there may be another draft by now.
    if (!isKept(draft)) return undefined;
    if (current.code === 'not_found') return gone(draft, to);
    if (current.failure) return failed(draft, ...current.failure);
    const before = readPets(current.text);
    const names = Object.keys(wanted).filter((name) => draft.members[name]);
    const touched = names.filter((name) => asShown(before, name) !== draft.members[name].seen);
    const isDone = (name) => asShown(before, name) === wanted[name];
    // After a try whose response was lost, what is there is ours.
    if (touched.some((name) => !draft.isUnclear || !isDone(name))) return conflict(draft, before, touched, to);
    if (names.every(isDone)) return saved(draft, wanted, before, before, to);
    const tag = tagOf(current);
    if (!tag) return failed(draft, 'A proxy removes the header ETag, which guards changes.');
    const body = json(Object.fromEntries(names.map((name) => [name, written(name, wanted[name])])));
    const answer = await call('PATCH', path, { body, headers: { ...TYPE, 'If-Match': tag }, to, fits });
    if (!answer.failure) return saved(draft, wanted, before, readPets(answer.text), to, tagOf(answer));
    draft.isUnclear ||= answer.isUnclear;
    const isLate = ['precondition_failed', 'not_found'].includes(answer.code);
    if (!isLate) return failed(draft, ...answer.failure, answer.isUnclear ? ' It is unclear if it was saved. Try again: it is saved only once.' : '');
  }
  return failed(draft, 'Somebody else is changing this pet again and again.');
}

function saved(draft, wanted, before, now, to, tag) {
  draft.isUnclear = false;
  const shown = petOf(draft.id) ?? now;
  const others = MEMBERS.filter((name) => !(name in wanted) && asShown(shown, name) !== asShown(now, name));
  put(now, to);
  const entry = tag && record({ kind: 'changed', before, after: now, names: Object.keys(wanted), tag, to });
  return { now, wanted, others, to, entry };
}

function failed(draft, ...words) {
  draft.problem = { words };
  // The row has the details.
  say('bad', draft.isUnclear ? 'It is unclear if this was saved: ' : 'Nothing was saved: ', named(petOf(draft.id) ?? draft), '. ', words[0]);
  if (isKept(draft)) settle(draft);
}

// Shows both values. What both have done is done.
function conflict(draft, now, touched, to) {
  put(now, to, false);
  const names = touched.filter((name) => exact(name, draft.members[name].mine) !== asShown(now, name));
  for (const name of touched) if (!names.includes(name)) delete draft.members[name];
  draft.problem = names.length ? { theirs: now, names } : null;
  const what = names.length ? 'Its row has both values: choose one.' : 'Yours is what it is already.';
  say('bad', 'Nothing was saved: ', named(now), ` was changed meanwhile. ${what}`);
  settle(draft);
  list.querySelector(`.notice[data-of="${draft.id}"]`)?.scrollIntoView({ block: 'nearest' });
}

function gone(draft, to) {
  const typed = draft.members.name ? [' Your name for it was ', shownName(draft.members.name.mine), '.'] : [];
  discard(draft);
  drop(draft.id, to);
  say('bad', 'Nothing was saved: ', named(draft), ' was already deleted.', ...typed);
}

export function saveMine(draft) {
  const { theirs, names } = draft.problem;
  for (const name of names) draft.members[name].seen = asShown(theirs, name);
  return save(draft);
}

export function takeTheirs(draft) {
  const { theirs, names } = draft.problem;
  for (const name of names) delete draft.members[name];
  draft.problem = null;
  settle(draft);
  say('', 'Left as it is: ', named(theirs), '.');
}

// Deletes a pet, if it is still as it was shown. Returns true if it is gone.
export function remove(shown, to) {
  return inTurn(async () => {
    const pet = newest(shown);
    const path = `/pets/${pet.id}`;
    say('', 'Deleting…');
    const current = await call('GET', path, { to, fits: isThis(pet.id) });
    let answer = current;
    if (!current.failure) {
      const now = readPets(current.text);
      const isSame = MEMBERS.every((name) => now[name] === pet[name]);
      if (!isSame) put(now, to, false);
      if (!isSame) return stop(named(now), ` was changed meanwhile. It has category ${now.categoryId} and the status ${now.status ?? 'none'}.`);
      answer = await call('DELETE', path, { headers: { 'If-Match': tagOf(current) }, to });
    }
    const { failure, code, isUnclear } = answer;
    if (code === 'precondition_failed') return stop(named(pet), ' was changed meanwhile. Delete it again if you still want to.');
    if (failure && code !== 'not_found') return stop(...failure, isUnclear ? ' It is unclear if it was deleted. Try again.' : '');
    record({ kind: 'deleted', before: pet, to });
    drop(pet.id, to);
    say('good', failure ? 'Already deleted: ' : 'Deleted: ', named(pet), ...elsewhere(to), '.');
    return true;
  });
}

function stop(...words) {
  say('bad', 'Nothing was deleted: ', ...words);
  return false;
}
