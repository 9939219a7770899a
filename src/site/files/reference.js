// The reference: a key for all operations, and a form for each.
import { whenKeyChanges } from './key.js';
import { enliven } from './trial.js';

for (const form of document.querySelectorAll('form.try')) {
  const update = enliven(form);
  whenKeyChanges(update);
  update();
}
