// The parts of the settings page: requests, elements, words, times, busy buttons, and text to copy.
// Text comes from DNS and from operators, so it becomes text nodes and nothing else.
import { element } from './elements.js';

const WAIT_MS = 20_000;
const LOCAL = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const announcement = document.getElementById('announcement');

// The failure of a request: words for people, and the status; 0 without a response.
export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// Calls the interface under /settings/api/. Returns the body of the response; null if it has none.
export async function call(key, method, path, body) {
  let response;
  let text;
  try {
    response = await fetch(`/settings/api/${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
      cache: 'no-store',
      credentials: 'omit',
      signal: AbortSignal.timeout(WAIT_MS),
    });
    text = await response.text();
  } catch {
    throw new Failure('The service is not responding. This page may be out of date.', 0);
  }
  let value = null;
  try {
    if (text) value = JSON.parse(text);
  } catch {
    throw new Failure(`The service returned status ${response.status} without JSON.`, response.status);
  }
  if (response.ok) return value;
  throw new Failure(value?.message ?? `The service returned status ${response.status}.`, response.status);
}

const said = new WeakMap();

// Shows the result of `make` for a value. Does nothing if the value is the one before, so that nothing flickers, no
// selection is lost and nothing is announced twice. Hides the element if there is nothing to show.
export function show(node, value, make = (text) => [text]) {
  const now = JSON.stringify(value ?? '');
  if (said.get(node) === now) return;
  said.set(node, now);
  node.replaceChildren(...(value ? make(value) : []));
  node.hidden = !value;
}

// The service's own words, with its commands as code.
export function words(text) {
  return text.split(/'(petstore [^']+)'/).map((part, at) => (at % 2 ? element('code', {}, ...flags(part)) : part));
}

// A command, whose flags do not break at their dashes.
function flags(command) {
  return command.split(/(--[a-z-]+)/).map((part, at) => (at % 2 ? element('span', { class: 'whole' }, part) : part));
}

// Shows a failure.
export const complain = (node, failure) => show(node, failure?.message, words);

// Announces it to readers who do not see it.
export function announce(text) {
  announcement.textContent = text;
}

// A local time, with UTC to compare it with a log.
export function time(utc) {
  const title = `${utc.replace('T', ' ').replace('Z', '')} UTC`;
  return element('time', { datetime: utc, title }, LOCAL.format(new Date(utc)));
}

// How long until a time plus some seconds: 'in 2 min'.
export function until(utc, seconds) {
  const minutes = utc ? Math.ceil((new Date(utc).getTime() + seconds * 1000 - Date.now()) / 60_000) : 0;
  return minutes > 1 ? `in ${minutes} min` : 'within a minute';
}

// A name that breaks before its dots.
export function dotted(name) {
  return name.split(/(?=\.)/).flatMap((part) => [element('wbr'), part]).slice(1);
}

// Marks a button as one that does nothing for now. Unlike a disabled one it keeps the focus.
const rest = (button, isResting) => button.setAttribute('aria-disabled', String(isResting));
export const isBusy = (button) => button.getAttribute('aria-disabled') === 'true';

// Runs the action of a button, once at a time.
export async function busy(button, run) {
  if (isBusy(button)) return;
  rest(button, true);
  try {
    await run();
  } finally {
    rest(button, button.classList.contains('working'));
  }
}

// Shows that the action of the button, or one like it, is under way, or no longer.
export function setWorking(button, isWorking) {
  button.classList.toggle('working', isWorking);
  rest(button, isWorking);
}
