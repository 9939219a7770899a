// The requests of the pets page, the shapes of their responses, their failures in the words of a shop, and the
// order of changes.
import { element } from './elements.js';
import { base, token } from './key.js';
import { say, STATUSES } from './pets-parts.js';
import { explain, send } from './request.js';

// Where requests go: the server and the key that are chosen. A change goes where it was asked for, also if it waits.
export const here = () => ({ base: base(), token: token() });
export const isHere = (to) => to.base === base() && to.token === token();

// What the body of a successful response has: a pet, unless told otherwise.
export const isPet = (read) => Number.isInteger(read?.id) && typeof read.name === 'string' && Number.isInteger(read.categoryId);
export const isList = (read) => Array.isArray(read) && read.every(isPet);
export const isCounts = (read) => [...STATUSES, 'unset', 'total'].every((part) => Number.isInteger(read?.[part]));
export const isChanges = (read) => Array.isArray(read) && read.every((change) => Number.isInteger(change?.id) && isPet(change.pet ?? change.before));
export const isThis = (id) => (read) => isPet(read) && read.id === Number(id);

export const json = (members) =>
  `{${Object.entries(members).map(([name, value]) => `"${name}":${typeof value === 'bigint' ? value : JSON.stringify(value)}`)}}`;

// The type of a change.
export const TYPE = { 'Content-Type': 'application/merge-patch+json' };

// A proxy that compresses makes a tag weak.
export const tagOf = ({ response }) => response.headers.get('ETag')?.replace('W/', '');

// The codes of the service after which a change may have been made.
const UNCLEAR = ['outcome_unknown', 'internal_error', 'request_timeout'];
// What happened and what to do, in one sentence.
const SENTENCES = {
  unauthorized: 'This key does not work. Enter another; what you typed stays.',
  insufficient_scope: 'This key can only read. Ask for one that may change pets.',
  https_required: 'This service takes keys over HTTPS only. Open its page with https:// and ask for a new key.',
  read_only: 'This service only shows pets, and changes none.',
  overloaded: 'The service has too much to do. Try again in a moment.',
  storage_unavailable: 'The service cannot use its database. Tell the person who runs it.',
  content_too_large: 'The name is too long.',
  invalid_member: 'The service does not take this value.',
};

// Sends a request. Returns the response and its text, or a failure as elements. A 304 is no failure.
export async function call(method, path, { body, headers = {}, to = here(), fits = isPet } = {}) {
  const request = { url: new URL(to.base + path, location.href).href, method, body, headers, token: to.token };
  // The form that has sent a change says what to do if it may have been carried out.
  const lost = (error) => ({ failure: [explain(error, { ...request, method: 'GET' })], isUnclear: method !== 'GET' && error.isSent });
  const answer = await send(request).catch(lost);
  const { response, text } = answer;
  if (!response || (response.status === 304 && headers['If-None-Match'])) return answer;
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    // A proxy may answer with a page of its own, even with 200.
  }
  if (method === 'DELETE' ? response.status === 204 : response.ok && fits(read)) return answer;
  const isOurs = read?.status === response.status && /^[a-z_]+$/.test(read.code);
  const { code, message } = isOurs ? read : { code: '', message: 'The response is not from the API.' };
  // Only the service knows what became of the request.
  const isUndone = code && !UNCLEAR.includes(code);
  return { response, text, code, failure: told(response, code, message), isUnclear: method !== 'GET' && !isUndone };
}

// A failure as one sentence, with the words of HTTP in a fold.
function told({ status, statusText }, code, message) {
  const sentence = SENTENCES[code] ?? (code ? 'The service refused this.' : 'Something between this page and the service answered in its place.');
  const more = code && element('a', { href: `/docs/errors#${code}` }, 'What to do about ', element('code', {}, code));
  const words = element('span', {}, ` ${`HTTP ${status} ${statusText}`.trim()}: ${message} `, more);
  return [sentence, ' ', element('details', { class: 'fold' }, element('summary', {}, 'Details'), words)];
}

// The queue of changes. They wait for each other, so that each is sent, in order, and none takes an earlier one for somebody
// else's change. No field waits for them.
let last = Promise.resolve();
// The number of those that are on their way or wait.
let waiting = 0;
// Rises whenever a change begins or ends: what was read meanwhile may be from before it.
let changes = 0;
const listeners = [];

export const isBusy = () => waiting > 0;
export const epoch = () => changes;
export const whenQueueMoves = (listener) => listeners.push(listener);

function move(by) {
  waiting += by;
  changes += 1;
  for (const listener of listeners) listener();
}

// Does this when all earlier changes are done. Returns what it returns, or undefined if it fails.
export function inTurn(act) {
  move(1);
  const failed = (error) => {
    say('bad', 'This page failed, so it is unclear what was done. Reload it to see the pets as they are.');
    reportError(error);
  };
  const done = last.then(act).catch(failed);
  last = done.finally(() => move(-1));
  return done;
}
