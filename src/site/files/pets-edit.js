// The open pet: fields for all of it, or the reason why there are none, and its JSON and curl for developers.
import { coloured, layOut } from './colours.js';
import { copyButton, element } from './elements.js';
import { base, isShown, token } from './key.js';
import { isRecorded, whenCounted } from './pets-counts.js';
import { keep, valueOf } from './pets-drafts.js';
import { can, int64, judge, mayChange, mayWrite, NO_CATEGORY, rowButton, STATUSES } from './pets-parts.js';
import { isConflict, isOnItsWay } from './pets-rows.js';
import { before } from './pets-view.js';
import { curl } from './sample.js';
import { writePet } from './table.js';

// The row of an open pet. `at` returns where the pets that are shown are from.
export function makeDetail(id, at) {
  let pet;
  const current = () => pet;
  const editor = mayChange('updatePet') ? makeEditor(id, current, at) : undefined;
  const [past, more] = [historyOf(current, at), forDevelopers(current)];
  const tr = element('tr', { role: 'row', class: 'detail', 'data-of': id }, element('td', { role: 'cell', colspan: '5' }, editor?.form ?? missing(), past.place, more.fold));
  function update(now, draft) {
    pet = now;
    editor?.update(now, draft);
    past.update();
    more.update();
  }
  return { id, tr, update, isForWriter: mayWrite() };
}

// What is missing here to change a pet.
function missing() {
  if (!mayWrite()) return element('p', {}, 'This key can only read. Ask for one that may change pets.');
  if (can('updatePet')) return '';
  const flag = element('code', {}, '--experimental');
  return element('p', {}, 'This service adds pets here, and does not change them. For that, whoever runs it starts it with ', flag, '. ', element('a', { href: '/docs/changing' }, 'More about changing pets'));
}

function makeEditor(id, pet, at) {
  const field = (label, more = {}) => element('input', { id: `edit-${label}`, 'data-part': label, autocomplete: 'off', ...more });
  const [name, category] = [field('Name'), field('Category', { inputmode: 'numeric', 'aria-describedby': 'edit-problem' })];
  const problem = element('p', { id: 'edit-problem', class: 'problem', hidden: '' });
  const radios = ['', ...STATUSES].map((value) => element('input', { type: 'radio', name: 'edit-status', value, 'data-part': `status-${value}` }));
  const choices = radios.map((radio) => element('label', { class: 'choice' }, radio, ` ${radio.value || 'none'}`));
  const save = element('button', { class: 'main', 'data-part': 'save-all' }, 'Save');
  const remove = mayChange('deletePet') ? [rowButton('Delete…', 'ask', 'danger-line')] : [];
  const form = element(
    'form',
    { 'aria-label': `Edit pet ${id}`, 'data-act': 'save', novalidate: '' },
    element('div', {}, element('label', { for: name.id }, 'Name'), name),
    element('div', {}, element('label', { for: category.id }, 'Category'), category, problem),
    element('fieldset', { class: 'choices' }, element('legend', {}, 'Status'), ...choices),
    element('p', { class: 'answers' }, save, rowButton('Cancel', 'cancel'), ...remove),
  );
  const isRight = () => judge(category, problem, int64(category.value) === undefined ? NO_CATEGORY : '');
  name.addEventListener('input', () => keep(pet(), at(), 'name', name.value));
  category.addEventListener('input', () => {
    keep(pet(), at(), 'categoryId', category.value);
    if (category.hasAttribute('aria-invalid')) isRight();
  });
  category.addEventListener('change', isRight);
  for (const radio of radios) radio.addEventListener('change', () => keep(pet(), at(), 'status', radio.value));

  function update(now, draft) {
    // A field that is right as it is keeps its caret.
    for (const [input, member] of [[name, 'name'], [category, 'categoryId']]) {
      const value = valueOf(now, draft, member);
      if (input.value !== value) input.value = value;
    }
    for (const radio of radios) radio.checked = radio.value === valueOf(now, draft, 'status');
    if (category.hasAttribute('aria-invalid')) isRight();
    const isSent = isOnItsWay(draft);
    save.textContent = isSent ? 'Saving…' : 'Save';
    save.setAttribute('aria-disabled', String(isSent));
    save.hidden = isConflict(draft);
  }
  return { form, update };
}

// What has happened to the pet, if the service records that. It is asked for when it is opened, and when the pet has changed.
function historyOf(pet, at) {
  const ul = element('ul');
  const fold = element('details', { class: 'fold' }, element('summary', {}, 'History'), ul);
  const place = element('div');
  let told;
  async function update() {
    if (isRecorded() && !fold.parentNode) place.append(fold);
    if (!isRecorded()) fold.remove();
    if (!fold.open || told === pet()) return;
    told = pet();
    const { tellHistory } = await import('./pets-history.js');
    if (told === pet()) await tellHistory(ul, told, at());
  }
  fold.addEventListener('toggle', update);
  updatePast = update;
  return { place, update };
}
// Whether changes are recorded is known with the counts.
let updatePast = () => {};
whenCounted(() => updatePast());

// The JSON of the pet and the curl line that lists it. They are made when they are opened.
function forDevelopers(pet) {
  const fold = element('details', { class: 'fold' }, element('summary', {}, 'For developers: JSON and curl'));
  const code = (label) => {
    const block = element('pre', { class: 'wrap', tabindex: '0', role: 'region', 'aria-label': label });
    return { block, whole: element('div', { class: 'code' }, block, copyButton(label, block, () => {})) };
  };
  const [shown, line] = [code('JSON'), code('curl')];
  function update() {
    if (!fold.open) return;
    const url = new URL(`${base()}/pets?after=${before(pet().id)}&limit=1`, location.href).href;
    shown.block.replaceChildren(...coloured(layOut(writePet(pet()))));
    line.block.replaceChildren(...coloured(curl({ url, method: 'GET', headers: [], token: token(), isShown: isShown() && Boolean(token()) })));
    fold.append(shown.whole, line.whole);
  }
  fold.addEventListener('toggle', update);
  return { fold, update };
}
