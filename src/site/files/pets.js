// The pets page: a table that a shop works with. This file connects the parts.
import './pets-acts.js';
import './pets-search.js';
import { hasUnadded, whenAdded } from './pets-add.js';
import { isBusy, whenQueueMoves } from './pets-api.js';
import { count, whenCounted } from './pets-counts.js';
import { allDrafts } from './pets-drafts.js';
import { shownPets } from './pets-list.js';
import { lose, unwatch, whenWatched } from './pets-live.js';
import { begin, EVERYTHING, go, load, refuse } from './pets-load.js';
import { sayPlace, whenTurned } from './pets-pages.js';
import { part, say } from './pets-parts.js';
import { showSelection } from './pets-select.js';
import { forgetChanges, undoLast } from './pets-undo.js';

whenTurned(go);
// Counts again after changes. A count is at most a second old.
let recount;
whenQueueMoves(() => {
  clearTimeout(recount);
  if (!isBusy()) recount = setTimeout(count, 1_100);
});
whenCounted(sayPlace);
whenWatched(
  () => {
    unwatch();
    refuse(false);
    lose();
    say('bad', 'This key no longer works. Enter another; what you typed stays.');
  },
  () => {
    showSelection();
    if (!shownPets().length) load();
  },
  load,
);
whenAdded(load, () => go({ ...EVERYTHING, order: 'desc' }));

document.addEventListener('keydown', (event) => {
  const isField = event.target.closest?.('input:not([type=checkbox], [type=radio]), textarea, select, dialog, .key');
  if (isField || event.altKey || event.shiftKey) return;
  const hasCommand = event.ctrlKey || event.metaKey;
  if (event.key === 'z' && hasCommand) undoLast();
  else if (event.key === '/' && !hasCommand) part('find-text').focus();
  else return;
  event.preventDefault();
});
// What is at the lower edge of the window hides no field that gets the focus.
new ResizeObserver(([{ target }]) => (document.documentElement.style.scrollPaddingBottom = `${target.offsetHeight + 8}px`)).observe(part('state').parentElement);
addEventListener('beforeunload', (event) => {
  if (isBusy() || hasUnadded() || allDrafts().length) event.preventDefault();
});

part('key-clear').addEventListener('click', forgetChanges);
begin();
