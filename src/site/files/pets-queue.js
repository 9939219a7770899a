// The queue of changes. They wait for each other, so that each is sent, in order, and none takes an earlier one for somebody
// else's change. No field waits for them.
import { say } from './pets-parts.js';

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
