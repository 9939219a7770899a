// The API key: as people paste it or as the address brings it, how long it is kept, and whether it works.
import { bare } from './elements.js';
import { explain } from './request.js';

const part = (id) => document.getElementById(id);
const [field, show, clear, state, remember] = ['key', 'key-show', 'key-clear', 'key-state', 'key-remember'].map(part);
const server = part('server');
const section = field.closest('.key');
const listeners = [];
const checked = [];

// The address of the service.
export const base = () => server.value;
export const token = () => bare(field.value);
const isVisible = () => field.type === 'text';
// True if samples have the key itself: because it can be seen, or because the reader wants that.
let isInSamples = false;
export const isShown = () => isVisible() || isInSamples;
export const hide = () => isVisible() && show.click();
export function putInSamples(is) {
  isInSamples = is;
  if (!is) hide();
  for (const listener of listeners) listener();
}
export const whenKeyChanges = (listener) => listeners.push(listener);
export const whenKeyIsChecked = (listener) => checked.push(listener);

// The tab keeps the key, and the device one that works if the reader wants that, unless other scripts of this origin, those of
// deployed files, could read it there.
const NAME = 'key';
export const isKept = section.dataset.keep === 'tab';
// A browser may forbid it. The key then lasts as long as the page.
const attempt = (use) => {
  try {
    return use();
  } catch {
    return undefined;
  }
};
const write = (storage, key) => {
  if (key && isKept) storage.setItem(NAME, key);
  else storage.removeItem(NAME);
};
const store = (key) => attempt(() => write(sessionStorage, key));
// The box has a tick only if the device can keep it.
function storeOnDevice(key) {
  const isDone = attempt(() => {
    write(localStorage, key);
    return true;
  });
  if (!isDone) remember.checked = false;
}
const onDevice = () => attempt(() => localStorage.getItem(NAME));
// Null if there is none, and undefined if storage cannot be read.
const stored = () => (isKept ? attempt(() => sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME)) : null);

function changed() {
  store(token());
  if (!token()) isInSamples = false;
  clear.hidden = !field.value;
  recall();
  for (const listener of listeners) listener();
}

export function put(key) {
  field.value = key;
  changed();
}

// The last question, a key at a server, and its verdict.
const question = () => `${base()} ${token()}`;
let judged = {};
function recall() {
  const { text = '', look = '' } = judged.about === question() ? judged : {};
  state.textContent = text;
  state.className = look;
}

// False if the key may only read; undefined until this is known.
export const canWrite = () => (judged.about === question() ? judged.canWrite : undefined);

// Forgets that the key works, since the service has refused it meanwhile.
export function doubt() {
  if (judged.look !== 'fine') return;
  judged = {};
  recall();
}

// What was found about the key: fine, wrong or unclear; undefined until this is known.
export const verdict = () => (judged.about === question() ? judged.look : undefined);

// The time for each response about a key.
const SECONDS = 20;

// `isAgain`: the service is asked again, whatever it said.
export async function check(isAgain = false) {
  const about = question();
  if (!token()) return;
  if (judged.about === about) {
    // The same key again, after none.
    const isKnown = judged.look && !isAgain && judged.look !== 'unclear';
    if (isKnown) tell();
    if (isKnown || !judged.look) return;
  }
  judged = { about, text: 'Checking the key…' };
  recall();
  const [text, look, canWrite] = await judge(token()).catch((error) => [
    `${explain(error, { url: base(), method: 'GET', seconds: SECONDS })} The key was not checked.`,
    'unclear',
  ]);
  // Another key may have been entered since.
  if (judged.about !== about) return;
  judged = { about, text, look, canWrite };
  recall();
  tell();
}

// Calls it once no pointer is down: a click is lost if what is under it moves meanwhile.
let isDown = false;
const waiting = new Set();
export function whenReleased(act) {
  if (isDown) waiting.add(act);
  else act();
}
function release() {
  isDown = false;
  for (const act of waiting) act();
  waiting.clear();
}
addEventListener('pointerdown', ({ button }) => (isDown = button === 0), true);
// The click comes after them.
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(release), true);

const tell = () => whenReleased(told);
function told() {
  if (verdict() === 'fine' && remember.checked) storeOnDevice(token());
  for (const listener of checked) listener();
}

// Asks the service about a key: if it is valid, and what it may do.
async function judge(key) {
  let headers;
  try {
    headers = new Headers({ Authorization: `Bearer ${key}` });
  } catch {
    return ['This is no API key: it has characters that a browser cannot send.', 'wrong'];
  }
  const options = { headers, credentials: 'omit', cache: 'no-store', signal: AbortSignal.timeout(SECONDS * 1_000) };
  const response = await fetch(`${base()}/pets?limit=1`, options);
  const { status } = response;
  if (status === 401) return ["This key doesn't work. It may be mistyped, expired or revoked.", 'wrong'];
  if (status !== 200) return [`The service returned ${status}, so the key could not be checked.`, 'unclear'];
  const scope = response.headers.get('Key-Scope');
  const reader = section.dataset.service === 'read-only' ? 'The service' : scope === 'read' && 'It';
  if (reader) return [`This key works. ${reader} is read-only: it shows pets, and cannot add or change them.`, 'fine', false];
  // Another version of the service may not say it.
  return ['This key works.', 'fine', scope ? true : undefined];
}

// theme.js has taken it out of the address.
function takeArrived() {
  const key = globalThis.arrivedKey;
  if (!key) return;
  delete globalThis.arrivedKey;
  put(key);
  // The device keeps its own key.
  if (onDevice() && onDevice() !== token()) remember.checked = false;
  check();
}

part('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  check(true);
});
field.addEventListener('input', () => {
  changed();
  if (!token() && remember.checked) storeOnDevice('');
});
field.addEventListener('change', () => {
  if (field.value !== token()) put(token());
  check();
});
server.addEventListener('change', () => {
  changed();
  check();
});
show.addEventListener('click', () => {
  field.type = isVisible() ? 'password' : 'text';
  show.textContent = isVisible() ? 'Hide' : 'Show';
  show.setAttribute('aria-pressed', String(isVisible()));
  for (const listener of listeners) listener();
});
remember.addEventListener('change', () => {
  if (!remember.checked) storeOnDevice('');
  check();
});
// The field keeps the focus during a click beside it: its check could fold the form under the pointer.
section.addEventListener('mousedown', (event) => {
  if (event.target.closest('button, .tab label')) event.preventDefault();
});
clear.addEventListener('click', () => {
  judged = {};
  put('');
  if (remember.checked) storeOnDevice('');
  remember.checked = false;
  // Nor is the next key shown.
  putInSamples(false);
  state.textContent = 'The key is cleared.';
  field.focus();
});
addEventListener('hashchange', takeArrived);
// Back to a page that the browser kept: the key may have been changed or cleared since.
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  putInSamples(false);
  const key = stored();
  if (!isKept || key === undefined) return;
  const isOther = (key ?? '') !== token();
  if (isOther) put(key ?? '');
  recallDevice();
  if (isOther) check();
});
// Another tab may have changed what the device keeps, or all of it.
addEventListener('storage', ({ key }) => {
  if ([NAME, null].includes(key) && token()) recallDevice();
});
function recallDevice() {
  remember.checked = Boolean(token()) && token() === onDevice();
}

if (!isKept) {
  store('');
  storeOnDevice('');
}
put(stored() ?? '');
recallDevice();
takeArrived();
