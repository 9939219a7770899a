// The forms of the reference, each of which sends the request of one operation.
import { showFailure, showResponse } from './answer.js';
import { coloured } from './colours.js';
import { element } from './elements.js';
import { base, check, isShown, putInSamples, token, verdict, whenKeyChanges } from './key.js';
import { explain, freshKey, send } from './request.js';
import { curl, writeSamples } from './sample.js';

const announcement = document.getElementById('announcement');

// Brings a form to life. Returns the function to call when the key has changed.
function enliven(form) {
  const [note, result, button] = ['.note', '.result', '.send button'].map((name) => form.querySelector(name));
  const figures = document.querySelectorAll(`figure[data-operation=${form.dataset.operation}]`);
  let sent = null;
  let isWaiting = false;
  // A create has an Idempotency-Key from the start. Once it was used, the next request gets a new one, unless it repeats one
  // whose outcome is not known.
  const once = form.elements.namedItem('Idempotency-Key');
  let made = null;
  const isMade = () => once?.value === made;
  const isUsed = () => isMade() && sent?.headers['Idempotency-Key'] === made;
  const make = () => {
    if (once) once.value = made = freshKey();
  };

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    for (const field of form.querySelectorAll('[data-in=path]')) field.value = field.value.trim();
    if (!form.reportValidity()) return;
    const isDangerous = ['PATCH', 'DELETE'].includes(form.dataset.method);
    if (isWaiting || (isDangerous && !confirm(`${word(form)}?`))) return;
    wait(true);
    announcement.textContent = '';
    sent = read(form);
    const say = await send(sent).then(
      (answer) => {
        const { status } = answer.response;
        if (status === 201 && isUsed()) make();
        // The key may have been revoked since.
        if (status === 401 && sent.token === token() && verdict() === 'fine') check(true);
        return showResponse(form, answer, open);
      },
      (error) => showFailure(form, explain(error, sent)),
    );
    announcement.textContent = say;
    wait(false);
    update();
  });
  form.addEventListener('input', ({ target }) => {
    if (target !== once && isUsed()) make();
    update();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  make();
  if (once) once.after(generator());

  function wait(is) {
    isWaiting = is;
    button.textContent = is ? 'Sending…' : word(form);
    button.setAttribute('aria-disabled', String(is));
    result.classList.toggle('old', is);
  }
  function update() {
    const request = read(form);
    note.hidden = Boolean(request.token);
    if (!isWaiting) button.textContent = word(form);
    const sample = read(form, true);
    // The samples make a key of their own, as the form does.
    if (isMade() && !isUsed()) sample.headers['Idempotency-Key'] = '';
    writeSamples(figures, { ...sample, isShown: Boolean(sample.token) && isShown() });
    const stale = result.querySelector('.stale');
    if (stale) stale.hidden = content(request) === content(sent);
  }
  function generator() {
    const button = element('button', { type: 'button' }, 'Generate');
    button.addEventListener('click', () => {
      make();
      update();
    });
    return button;
  }
  return update;
}

// All of a request but its Idempotency-Key.
const content = ({ headers: { 'Idempotency-Key': _, ...headers }, ...others }) => JSON.stringify({ headers, ...others });

// The words on a button that sends: what it deletes, and the server if it is not that of the page.
function word({ dataset, elements }) {
  const { host } = new URL(base(), location.href);
  const isOwn = host === location.host;
  const verb = { DELETE: 'Delete', PATCH: 'Change' }[dataset.method];
  if (verb) return `${verb} pet ${elements.petId.value}${isOwn ? '' : ` at ${host}`}`;
  return isOwn ? 'Send' : `Send to ${host}`;
}

// Opens an operation at its form, with these values.
function open(form, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name);
    if (field) field.value = value;
  }
  form.dispatchEvent(new Event('input'));
  const operation = form.closest('details');
  if (!operation.open) location.hash = form.querySelector('h4').id;
  return form;
}

// The request that a form describes. A sample has an example in place of a required field that is empty.
function read(form, isSample = false) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  let body;
  let type;
  for (const { name, value, dataset } of form.querySelectorAll('[data-in]')) {
    if (dataset.in === 'body') [body, type] = [value, dataset.type];
    else if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value || (isSample ? dataset.example : '')));
    else if (value !== '' && dataset.in === 'query') query.append(name, value);
    else if (dataset.in === 'header' && value !== '') headers[name] = value;
  }
  if (body !== undefined) headers['Content-Type'] = type;
  const url = new URL(base() + path + (query.size ? `?${query}` : ''), location.href).href;
  return { url, method: form.dataset.method, headers, body, token: token(), isEmpty: 'empty' in form.dataset };
}

// Beside each sample: what $KEY is, or the choice to have the key itself.
for (const note of document.querySelectorAll('.with')) {
  const own = element('input', { type: 'checkbox' });
  own.addEventListener('change', () => putInSamples(own.checked));
  const choice = element('label', {}, own, ' with my key');
  const [ofKey] = note.children;
  ofKey.before(choice);
  const update = () => {
    choice.hidden = !token();
    ofKey.hidden = !choice.hidden;
    own.checked = isShown();
  };
  whenKeyChanges(update);
  update();
}

// The first request of the page.
const first = document.querySelector('.first pre:not(.wrap) code');
const showFirst = () => {
  const { href } = new URL(`${base()}/pets`, location.href);
  const line = curl({ url: href, method: 'GET', headers: [], token: token(), isShown: Boolean(token()) && isShown() });
  if (first.textContent !== line) first.replaceChildren(...coloured(line));
};
whenKeyChanges(showFirst);
showFirst();

for (const form of document.querySelectorAll('form.try')) {
  const update = enliven(form);
  whenKeyChanges(update);
  update();
}
