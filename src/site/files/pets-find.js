// Finds the pets of a view: by name, category, status and id. The service looks at some thousand pets for each request, so the
// page asks on until it is full or stopped.
import { call, isList, tagOf } from './pets-api.js';
import { fits } from './pets-list.js';
import { before, isId, queryOf } from './pets-view.js';
import { int64 } from './pets-parts.js';
import { nextPage } from './request.js';
import { readPets } from './table.js';

let isStopped = false;
export function stopFinding() {
  isStopped = true;
}

// Returns the pets, the requests with their tags, and the query that goes on; or a failure, with the header field that says what
// the service ignored. `isCurrent` says if the answer is still wanted, `tell` gets what was found so far, and `most` is the
// number of requests after which it stops.
export async function findPage(view, to, isCurrent, tell = () => {}, most = Infinity) {
  isStopped = false;
  const { query, isTurned } = queryOf(view);
  const requests = [];
  const get = async (wanted) => {
    const path = `/pets?${new URLSearchParams(wanted)}`;
    const answer = await call('GET', path, { to, fits: isList });
    if (!answer.failure) requests.push({ path, tag: tagOf(answer) });
    return answer;
  };
  const found = [];
  // The pet with this id comes first.
  if (isId(view.name) && int64(view.name) && !view.after && !view.before) {
    const answer = await get({ after: before(view.name), limit: 1 });
    if (!isCurrent()) return undefined;
    if (answer.failure && answer.code !== 'invalid_parameter') return { ...answer, found, requests };
    if (!answer.failure) found.push(...readPets(answer.text).filter((pet) => pet.id === int64(view.name) && fits(pet, view)));
  }
  const pinned = found.length;
  let following = query;
  let last;
  while (following && (!last || found.length < Number(view.limit)) && !(last && isStopped)) {
    const left = Number(view.limit) - found.length;
    last = await get(last ? { ...following, limit: left } : query);
    if (!isCurrent()) return undefined;
    if (last.failure) return { ...last, found, requests };
    const isNew = ({ id }) => !found.some((pet) => pet.id === id);
    found.push(...readPets(last.text).filter(isNew));
    const next = nextPage(last.response);
    following = next?.has('after') || next?.has('before') ? Object.fromEntries(next) : undefined;
    if (following) tell(found, following.after ?? following.before);
    isStopped ||= requests.length >= most;
  }
  const others = found.splice(pinned);
  const ordered = [...found, ...(isTurned ? others.reverse() : others)];
  return { found: ordered, requests, following, isTurned, isStopped: isStopped && Boolean(following), response: last.response };
}
