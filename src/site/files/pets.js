// The pets page: a table whose filter, page and open pet are in the address, and forms that add and change pets.
import { coloured, layOut } from './colours.js';
import { copyButton, element } from './elements.js';
import { base, canWrite, check, isShown, token, whenKeyChanges, whenKeyIsChecked } from './key.js';
import { explain, freshKey, nextPage, send } from './request.js';
import { curl } from './sample.js';
import { petRow, petTable, pill, readPets, shownName, writePet } from './table.js';

const inventory = document.getElementById('inventory');
const [bar, state, list, pager, dialog] = ['.bar', '#state', '.table', '.pager', 'dialog'].map((name) => inventory.querySelector(name));
const [find, limit, adder, opener, unset, unadded] = ['find', 'limit', 'add', 'add-open', 'unset', 'unadded'].map((id) => document.getElementById(id));
const filters = [...inventory.querySelectorAll('.filters a')];
const [previous, next] = pager.children;
const STATUSES = ['available', 'pending', 'sold'];
// The operations of this service; some need a flag.
const can = (operation) => inventory.dataset.operations.split(' ').includes(operation);
// As long as it is not known, a key may write.
const mayWrite = () => canWrite() !== false;
const mayChange = (operation) => can(operation) && mayWrite();
const isId = (text) => /^-?\d+$/.test(text);
// The `after` of the page that begins with this pet.
const before = (id) => String(BigInt(id) - 1n);

// The view that the address names.
function asked() {
  const { status = '', limit = '20', after = '' } = Object.fromEntries(new URLSearchParams(location.search));
  const id = location.hash.slice(1);
  return { status, limit, after, id: isId(id) ? id : '' };
}

function address({ status, limit, after, id }) {
  const query = new URLSearchParams(Object.entries({ status, limit: limit === '20' ? '' : limit, after }).filter(([, value]) => value));
  return `/pets${query.size ? `?${query}` : ''}${id ? `#${id}` : ''}`;
}

// Goes to another page of the list. `trail` has the beginning of each page before it.
function go(changes, trail = [], way = 'pushState') {
  history[way]({ trail }, '', address({ ...asked(), id: '', ...changes }));
  return load();
}

// Where requests go: the server and the key that are chosen. A change goes where it was asked for, also if it waits.
const here = () => ({ base: base(), token: token() });
const isHere = (to) => to.base === base() && to.token === token();
// Where the pets that are shown are from. They are changed there, even if another server was chosen since.
let shownAt = here();

// What the body of a successful response has: a pet, unless told otherwise.
const isPet = (read) => Number.isInteger(read?.id) && typeof read.name === 'string' && Number.isInteger(read.categoryId);
const isList = (read) => Array.isArray(read) && read.every(isPet);
const isCounts = (read) => [...STATUSES, 'unset', 'total'].every((part) => Number.isInteger(read?.[part]));
// The codes of the service after which a change may have been made.
const UNCLEAR = ['outcome_unknown', 'internal_error', 'request_timeout'];

// Sends a request. Returns the response and its text, or a failure as elements.
async function call(method, path, { body, headers = {}, to = here(), fits = isPet } = {}) {
  const request = { url: new URL(to.base + path, location.href).href, method, body, headers, token: to.token };
  // The form that has sent a change says what to do if it may have been carried out.
  const lost = (error) => ({ failure: [explain(error, { ...request, method: 'GET' })], isUnclear: method !== 'GET' && error.isSent });
  const answer = await send(request).catch(lost);
  const { response, text } = answer;
  if (!response) return answer;
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    // A proxy may answer with a page of its own, even with 200.
  }
  if (method === 'DELETE' ? response.status === 204 : response.ok && fits(read)) return answer;
  const isOurs = read?.status === response.status && /^[a-z_]+$/.test(read.code);
  const { code, message } = isOurs ? read : { code: '', message: 'The response is not from the API.' };
  const title = element('span', { class: `pill s${Math.floor(response.status / 100)}` }, `${response.status} ${response.statusText}`.trim());
  const more = code && element('a', { href: `/docs/errors#${code}` }, 'What to do about ', element('code', {}, code));
  // Only the service knows what became of the request.
  const isUndone = code && !UNCLEAR.includes(code);
  return { response, text, code, failure: [title, ' ', message, ' ', more], isUnclear: method !== 'GET' && !isUndone };
}

// Shows a sentence above the table. `look` is its class.
function say(look, ...parts) {
  state.className = look;
  state.replaceChildren(...parts);
}

const press = (words, act, kind = '') => {
  const button = element('button', { type: 'button', class: kind }, words);
  button.addEventListener('click', act);
  return button;
};
const command = (text) => {
  const code = element('code', {}, text);
  return element('span', { class: 'command' }, code, copyButton(text, code, () => {}));
};
const named = ({ id, name }) => element('span', {}, `pet ${id}, `, shownName(name));

// The pets that are shown, and the number of the last request: a response to an earlier one is out of date.
let pets = [];
let isEmpty = false;
// Whether they are shown to somebody who may change them.
let isForWriter = true;
let turn = 0;

async function load() {
  const view = asked();
  const mine = (turn += 1);
  for (const link of filters) {
    const { status, after } = { ...view, status: new URL(link.href).searchParams.get('status') ?? '', after: '' };
    link.href = address({ status, limit: view.limit, after });
    if (status === view.status) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
  limit.value = view.limit;
  const hasKey = Boolean(token());
  isEmpty = false;
  for (const part of [bar, list, pager]) part.hidden = !hasKey;
  offer();
  if (!hasKey) {
    show([]);
    list.removeAttribute('aria-busy');
    return say('', 'Enter an API key to see the pets.');
  }
  list.setAttribute('aria-busy', 'true');
  if (!pets.length) say('', 'Loading…');
  const query = new URLSearchParams(Object.entries({ ...view, id: '' }).filter(([, value]) => value));
  const to = here();
  const answer = await call('GET', `/pets?${query}`, { to, fits: isList });
  if (mine !== turn || !isHere(to)) return;
  list.removeAttribute('aria-busy');
  list.classList.toggle('old', Boolean(answer.failure));
  if (answer.failure) {
    const isRefused = [401, 403].includes(answer.response?.status);
    if (!pets.length || isRefused) show([]);
    if (isRefused) {
      for (const link of filters) link.replaceChildren(link.firstChild);
      unset.hidden = true;
    }
    return say('bad', ...answer.failure, ' ', press('Try again', retry));
  }
  // What was typed for a pet of another server does not go to this one.
  if (to.base !== shownAt.base) edited = undefined;
  shownAt = to;
  const found = readPets(answer.text);
  const hasIt = found.some(({ id }) => id === view.id);
  // The address names a pet of another page.
  if (view.id && !hasIt && (view.status || view.after !== before(view.id))) {
    return go({ status: '', after: before(view.id), id: view.id }, [], 'replaceState');
  }
  show(found);
  turnPages(view, nextPage(answer.response)?.get('after'));
  if (view.id && !hasIt) say('', `There is no pet ${view.id}.`, found.length ? ` The next one is ${found[0].id}.` : '');
  else if (!found.length) sayEmpty(view);
  else say('', found.length > 1 ? `Ids ${found[0].id} to ${found.at(-1).id}` : `Id ${found[0].id}`);
  rowOf(view.id)?.scrollIntoView({ block: 'nearest' });
  count();
}

const retry = () => {
  check();
  load();
};

function sayEmpty(view) {
  isEmpty = true;
  say('', ...nothing(view));
}

// The reason for an empty table, and the way on.
function nothing({ status, after }) {
  if (after) return ['There are no more pets. ', press('First page', () => go({ after: '' }))];
  if (status) return [`No pet is ${status}. `, press('All pets', () => go({ status: '' }))];
  const add = mayWrite() ? [press('Add one', openAdder), ' or import a file: '] : ['Import a file: '];
  return ['No pets yet. ', ...add, command('petstore import pets.csv')];
}

function show(found) {
  const typing = edited?.fields.find((field) => field === document.activeElement);
  pets = found;
  isForWriter = mayWrite();
  list.hidden = !found.length;
  pager.hidden = !found.length;
  list.replaceChildren(petTable(found, '', cell));
  openRow();
  if (!typing) return;
  const field = edited?.fields.find(({ id }) => id === typing.id);
  field?.focus();
  field?.setSelectionRange(typing.selectionStart, typing.selectionEnd);
}

function turnPages({ after }, following) {
  const { trail = [] } = history.state ?? {};
  const turnTo = (button, words, target) => {
    button.textContent = words;
    button.setAttribute('aria-disabled', String(!target));
    button.onclick = async () => {
      if (!target) return;
      await go(...target);
      if (list.getBoundingClientRect().top < 0) inventory.scrollIntoView();
    };
  };
  if (trail.length || !after) turnTo(previous, 'Previous', trail.length && [{ after: trail.at(-1) }, trail.slice(0, -1)]);
  else turnTo(previous, 'First page', [{ after: '' }]);
  turnTo(next, 'Next', following && [{ after: following }, [...trail, after]]);
}

// The numbers next to the filters, if the service counts. A count is at most a second old.
async function count() {
  if (!can('getInventory') || !token()) return;
  const about = question();
  const { failure, text } = await call('GET', '/store/inventory', { fits: isCounts });
  if (failure || about !== question()) return;
  const counts = readPets(text);
  const shown = (number) => Number(number).toLocaleString('en');
  for (const link of filters) {
    const number = counts[new URL(link.href).searchParams.get('status') ?? 'total'];
    link.replaceChildren(link.firstChild, ' ', element('span', {}, shown(number)));
  }
  unset.hidden = counts.unset === '0';
  unset.textContent = `No status ${shown(counts.unset)}`;
}

// Offers only what the key permits.
function offer() {
  opener.hidden = !token() || !mayWrite();
  adder.hidden ||= opener.hidden;
  opener.setAttribute('aria-expanded', String(!adder.hidden));
}

// Changes wait for each other, so that each is sent, in order, and none takes an earlier one for somebody else's change.
let lastChange = Promise.resolve();
let recount;
// The number of those that are on their way or wait.
let waiting = 0;
function inTurn(act, to = shownAt) {
  waiting += 1;
  const failed = (error) => {
    say('bad', 'This page failed, so it is unclear what was done. Reload it to see the pets as they are.');
    reportError(error);
  };
  lastChange = lastChange
    .then(() => act(to))
    .catch(failed)
    .finally(() => {
      waiting -= 1;
      clearTimeout(recount);
      recount = setTimeout(count, 1_100);
    });
}
// Pets as they were shown when somebody changed them, each with the pet after the change. A change of the same pet that
// waited goes on from there.
const successors = new WeakMap();
const newest = (pet) => (successors.has(pet) ? newest(successors.get(pet)) : pet);

const rowOf = (id) => list.querySelector(`tr[data-id="${id}"]`);
const options = (chosen, ...values) =>
  values.map((value) => element('option', { value, ...(value === chosen && { selected: '' }) }, value || 'none'));

// The status in a row: a choice if it can be changed. Nothing is sent before Save, since a key press chooses too.
function cell(pet) {
  if (!mayChange('updatePet')) return pill(pet);
  const select = element('select', { 'aria-label': `Status of pet ${pet.id}`, class: `pill ${pill(pet).className}` }, ...options(pet.status ?? '', '', ...STATUSES));
  const save = press('Save', () => {
    const members = { status: select.value || null };
    inTurn((to) => change(pet, members, to));
  });
  save.hidden = true;
  select.addEventListener('change', () => (save.hidden = select.value === (pet.status ?? '')));
  return element('div', {}, select, save);
}

// Opens the pet that the address names. What shows it already stays.
let opened;
function openRow() {
  const { id } = asked();
  for (const link of list.querySelectorAll('.name a')) link.setAttribute('aria-expanded', String(link.hash === `#${id}`));
  const pet = pets.find((one) => one.id === id);
  const old = list.querySelector('.detail');
  if (old && pet === opened) return;
  old?.remove();
  opened = pet;
  if (edited?.id !== id) edited = undefined;
  if (pet) rowOf(id).after(element('tr', { role: 'row', class: 'detail' }, element('td', { role: 'cell', colspan: '4' }, ...detail(pet))));
}

function detail(pet) {
  const { id } = pet;
  const url = new URL(`${base()}/pets?after=${before(id)}&limit=1`, location.href).href;
  const code = (text, label) => {
    const block = element('pre', { class: 'wrap', tabindex: '0', role: 'region', 'aria-label': label }, ...coloured(text));
    return element('div', { class: 'code' }, block, copyButton(label, block, () => {}));
  };
  return [
    element('div', {}, ...(mayChange('updatePet') ? [editor(pet)] : commands(id))),
    element('div', {}, code(layOut(writePet(pet)), 'JSON'), code(curl({ url, method: 'GET', headers: [], token: token(), isShown: isShown() }), 'curl')),
  ];
}

function commands(id) {
  const about = element('p', {}, 'To change it, run one of these on the machine of the service. ', element('a', { href: '/docs/data' }, 'More about editing'));
  const lines = [...STATUSES.map((status) => `petstore pet status ${id} ${status}`), `petstore pet delete ${id}`];
  return [about, ...lines.map((line) => element('p', {}, command(line)))];
}

// What a field shows until somebody types. It leaves out what it cannot show, such as a line break.
const shownIn = (field) => field.defaultValue.replace(/[\r\n]/g, '');

// Name and category. Only what has changed is sent. What was typed stays when the row of this pet is made again.
let edited;
function editor(pet) {
  const input = (label, value, more) => [
    element('label', { for: `edit-${label}` }, label),
    element('input', { id: `edit-${label}`, value, autocomplete: 'off', ...more }),
  ];
  const form = element(
    'form',
    { 'aria-label': `Edit pet ${pet.id}` },
    ...input('Name', pet.name),
    ...input('Category', pet.categoryId, { inputmode: 'numeric', pattern: '-?[0-9]+', title: 'a whole number', required: '' }),
    element('p', { class: 'answers' }, element('button', { class: 'main' }, 'Save changes'), ...(mayChange('deletePet') ? [press('Delete…', () => ask(pet))] : [])),
  );
  const fields = [...form.querySelectorAll('input')];
  if (edited?.id === pet.id) {
    edited.fields.forEach((old, at) => {
      if (old.value !== shownIn(old)) fields[at].value = old.value;
    });
  }
  edited = { id: pet.id, fields };
  const [name, category] = fields;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const members = {
      ...(name.value !== shownIn(name) && { name: name.value }),
      ...(category.value !== pet.categoryId && { categoryId: BigInt(category.value) }),
    };
    // A status that was chosen in the row is saved too.
    const { value } = rowOf(pet.id).querySelector('select');
    if (value !== (pet.status ?? '')) members.status = value || null;
    inTurn((to) => change(pet, members, to));
  });
  return form;
}

const json = (members) => `{${Object.entries(members).map(([name, value]) => `"${name}":${typeof value === 'bigint' ? value : JSON.stringify(value)}`)}}`;

// Changes a pet, if it is still as it is shown here. The tag of a pet comes with the pet alone: a list has one tag for all.
async function change(shown, wanted, to) {
  const pet = newest(shown);
  const { length } = Object.keys(wanted);
  if (!length) return say('', 'There is nothing to save.');
  // A second click asks for what the first one has done.
  const isSaved = ([name, value]) => String(pet[name] ?? null) === String(value);
  const members = Object.fromEntries(Object.entries(wanted).filter((member) => !isSaved(member)));
  if (!Object.keys(members).length) return undefined;
  const body = json(members);
  const text = await guarded(pet, 'PATCH', { body, headers: { 'Content-Type': 'application/merge-patch+json' }, to });
  if (!text) return;
  const now = readPets(text);
  successors.set(pet, now);
  // What the form has sent is shown as the service has it, 7 and not 007.
  if (to.base === shownAt.base && ('name' in members || 'categoryId' in members)) edited = undefined;
  put(now, to);
  const changed = !('status' in members) ? ['is saved'] : now.status ? ['is now ', pill(now)] : ['has no status now'];
  say('good', 'Done: ', named(now), ' ', ...changed, ...elsewhere(to), '.');
}

async function remove(shown, to) {
  const pet = newest(shown);
  const text = await guarded(pet, 'DELETE', { to });
  if (text === undefined) return;
  drop(pet.id, to);
  say('good', 'Deleted: ', named(pet), ...elsewhere(to), '.');
}

// Names the server of a change, if the page has turned to another one.
const elsewhere = (to) => (to.base === base() ? [] : [` on ${new URL(to.base, location.href).href}`]);

// Sends a change with If-Match. Returns the text of the response; after a failure, shows the failure and returns nothing.
async function guarded(pet, method, { body, headers, to }) {
  const path = `/pets/${pet.id}`;
  say('', 'Saving…');
  const fits = (read) => isPet(read) && read.id === Number(pet.id);
  const current = await call('GET', path, { to, fits });
  const isSame = () => writePet(readPets(current.text)) === writePet(pet);
  if (!current.failure && isSame()) {
    // A proxy that compresses makes a tag weak.
    const tag = current.response.headers.get('ETag')?.replace('W/', '');
    if (!tag) return say('bad', 'Nothing was saved: a proxy removes the header ETag.');
    const { failure, code, text, isUnclear } = await call(method, path, { body, headers: { ...headers, 'If-Match': tag }, to, fits });
    if (!failure) return text;
    if (code !== 'precondition_failed' && code !== 'not_found') {
      say('bad', ...failure, isUnclear ? ' It is unclear if the change was made. Try again: it is made only once, or you see the pet as it is now.' : '');
      return undefined;
    }
    return conflict(pet, await call('GET', path, { to, fits }), to);
  }
  return conflict(pet, current, to);
}

// Shows that the pet was changed or deleted, perhaps by an earlier try.
function conflict(pet, { failure, code, text }, to) {
  if (!failure) {
    const now = readPets(text);
    put(now, to);
    say('bad', 'Nothing was saved: this pet was changed meanwhile. It is now ', named(now), ', with the category ', now.categoryId, ' and the status ', pill(now), '.');
  } else if (code === 'not_found') {
    drop(pet.id, to);
    say('bad', 'Nothing was saved: ', named(pet), ' was already deleted.');
  } else {
    say('bad', ...failure);
  }
}

function put(pet, to) {
  if (to.base !== shownAt.base) return;
  pets = pets.map((one) => (one.id === pet.id ? pet : one));
  const row = petRow(pet, '', cell);
  rowOf(pet.id)?.replaceWith(row);
  openRow();
  // Somebody may be typing elsewhere by now.
  if (document.activeElement === document.body) row.querySelector(asked().id === pet.id ? 'a' : 'select')?.focus();
}

function drop(id, to) {
  if (to.base !== shownAt.base) return;
  pets = pets.filter((one) => one.id !== id);
  if (asked().id === id) {
    history.replaceState(history.state, '', address({ ...asked(), id: '' }));
    openRow();
  }
  const row = rowOf(id);
  const near = row?.nextElementSibling ?? row?.previousElementSibling;
  row?.remove();
  if (document.activeElement === document.body) (near?.querySelector('.name a') ?? limit).focus();
}

// Asks before a pet is deleted.
function ask(pet) {
  const [cancel, yes] = dialog.querySelectorAll('button');
  dialog.querySelector('p').replaceChildren('Delete ', named(pet), '?');
  cancel.onclick = () => dialog.close();
  yes.onclick = () => {
    dialog.close();
    inTurn((to) => remove(pet, to));
  };
  dialog.showModal();
}

const [name, category, status] = ['name', 'category', 'status'].map((part) => document.getElementById(`add-${part}`));

function openAdder() {
  adder.hidden = false;
  offer();
  name.focus();
}
opener.addEventListener('click', () => {
  if (adder.hidden) return openAdder();
  adder.hidden = true;
  return offer();
});

// The number of pets that are on their way or wait for their turn.
let adding = 0;
// Adds a pet that was taken from the form. Sent again, it has the same idempotency key, which the service knows together
// with the API key: so a pet that may have been added goes where it went before.
function add(pet) {
  adding += 1;
  say('', adding === 1 ? 'Adding…' : `Adding ${adding} pets…`);
  inTurn(async (to) => {
    if (!pet.isUnclear) pet.to = to;
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': pet.onceKey };
    const answer = await call('POST', '/pets', { body: pet.body, headers, to: pet.to });
    adding -= 1;
    // A later failure does not say what became of an earlier try.
    pet.isUnclear ||= answer.isUnclear;
    if (answer.failure) keepUnadded(pet, answer);
    // The list is drawn once, after the last of them.
    if (!adding) await load();
    if (!answer.failure) sayAdded(answer, pet.to);
  }, here());
}

function sayAdded({ response, text }, to) {
  const pet = readPets(text);
  const isReplayed = response.headers.has('Idempotency-Replayed');
  const more = adding ? `. ${adding} more to add…` : '.';
  const isOld = list.classList.contains('old') ? [' The list could not be read again. ', press('Try again', retry)] : [];
  const link = isHere(to) ? element('a', { href: `#${pet.id}` }, named(pet)) : named(pet);
  say('good', isReplayed ? 'Already added, and only once: ' : 'Added: ', link, ...elsewhere(to), more, ...isOld);
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
addEventListener('beforeunload', (event) => {
  if (waiting || unadded.children.length) event.preventDefault();
});

const submit = (form, act) =>
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });
// The form is empty and has the focus again at once, so that the next pet can be typed while this one is on its way.
submit(adder, () => {
  const body = json({ name: name.value, categoryId: BigInt(category.value), ...(status.value && { status: status.value }) });
  add({ body, onceKey: freshKey(), name: name.value, category: category.value, status: status.value });
  name.value = '';
  name.focus();
});
submit(find, () => {
  const { value } = find.elements[0];
  const id = String(BigInt(value));
  // Unless somebody is elsewhere by then.
  const lead = () => find.contains(document.activeElement) && rowOf(id)?.querySelector('a').focus();
  go({ status: '', after: before(id), id }).then(lead);
});
limit.addEventListener('change', () => go({ limit: limit.value, after: '' }));
inventory.addEventListener('click', (event) => {
  const link = event.target.closest('.filters a, .name a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.closest('.filters')) return go({ status: new URL(link.href).searchParams.get('status') ?? '', after: '' });
  const id = link.hash.slice(1);
  // The page stays where it is.
  history.pushState(history.state, '', address({ ...asked(), id: asked().id === id ? '' : id }));
  return openRow();
});
addEventListener('popstate', load);

let loadedFor = '';
const question = () => `${base()} ${token()}`;
whenKeyIsChecked(() => {
  offer();
  // What was chosen or typed meanwhile stays, unless this key may not change pets.
  if (loadedFor === question()) return isEmpty ? sayEmpty(asked()) : isForWriter !== mayWrite() && show(pets);
  loadedFor = question();
  return load();
});
whenKeyChanges(() => {
  if (token()) return;
  loadedFor = '';
  load();
});
if (token()) {
  loadedFor = question();
  check();
}
load();
