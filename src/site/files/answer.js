// The response to a request: its status, its header fields and its body, and the next steps.
import { coloured, layOut } from './colours.js';
import { copyButton, element } from './elements.js';
import { nextPage } from './request.js';

// Shows a response. `open` opens the form of another operation with values in its fields.
export function showResponse(form, { response, text, ms }, open) {
  const { status, statusText, headers } = response;
  const isJson = /\bjson\b/.test(headers.get('Content-Type'));
  const pill = element('span', { class: `pill s${Math.floor(status / 100)}` }, `${status} ${statusText}`.trim());
  const size = new Blob([text]).size;
  const measured = element('span', { class: 'note' }, `${Math.round(ms)} ms · ${size.toLocaleString('en')} bytes`);
  const content = element('pre', { class: 'content wrap', tabindex: '0', role: 'region', 'aria-label': form.ariaLabel.replace('Try it', 'Response') });
  content.append(...(isJson ? coloured(layOut(text)) : [text]));
  const body = element('div', { class: 'code' }, content, copyButton('response', content, announce));
  const next = follow(form, response, isJson ? text : '', open);
  show(form, [
    element('p', { class: 'status' }, pill, ' ', measured),
    ...(next.length ? [element('p', { class: 'follow' }, ...next)] : []),
    ...fields(form, headers),
    ...(isPets(form, status, text) ? views(body, text) : text ? [body] : []),
  ]);
  return `Response ${pill.textContent}`;
}

const announce = (text) => (document.getElementById('announcement').textContent = text);

// A page of pets is JSON until the reader chooses a table. Then the next pages are tables too.
let isTable = false;
const isPets = ({ dataset }, status, text) => dataset.operation === 'listPets' && status === 200 && text !== '[]';

function views(body, text) {
  const place = element('div', { class: 'table' });
  const choices = ['Table', 'JSON'].map((name) => {
    const button = element('button', { type: 'button' }, name);
    button.addEventListener('click', () => choose(name === 'Table'));
    return button;
  });
  const choose = async (is) => {
    isTable = is;
    for (const [i, button] of choices.entries()) button.setAttribute('aria-pressed', String(isTable === (i === 0)));
    if (is) {
      const { petTable, readPets } = await import('./table.js');
      place.replaceChildren(petTable(readPets(text), '/pets'));
    }
    place.hidden = !is;
    body.hidden = is;
  };
  choose(isTable);
  return [element('div', { class: 'languages', role: 'group', 'aria-label': 'View' }, ...choices), place, body];
}

// Shows a sentence in place of a response.
export function showFailure(form, sentence) {
  show(form, [element('p', { class: 'status' }, element('span', { class: 'pill s5' }, 'No response'), ' ', sentence)]);
  return `No response. ${sentence}`;
}

function show(form, parts) {
  const result = form.querySelector('.result');
  const stale = element('p', { class: 'note stale', hidden: '' }, 'The form has changed since this response.');
  const [status, ...others] = parts;
  result.replaceChildren(status, stale, ...others);
  result.hidden = false;
  result.querySelector('.status').scrollIntoView({ block: 'nearest' });
}

// The header fields: those that the operation documents open, the others folded.
function fields(form, headers) {
  const documented = new Map(form.dataset.fields.split(' ').map((name) => [name.toLowerCase(), name]));
  const list = (entries) =>
    element(
      'dl',
      { class: 'fields' },
      ...entries.map(([name, value]) =>
        element('div', {}, element('dt', {}, documented.get(name) ?? name), element('dd', {}, value)),
      ),
    );
  const [known, others] = [true, false].map((is) => [...headers].filter(([name]) => documented.has(name) === is));
  return [
    ...(known.length ? [list(known)] : []),
    ...(others.length ? [element('details', { class: 'others' }, element('summary', {}, `${others.length} more header fields`), list(others))] : []),
  ];
}

// Where a response leads: to the next page, to the pet that was added, to what an error means.
function follow(form, response, json, open) {
  const { status, headers, url } = response;
  const ways = [];
  const press = (words, go) => {
    const button = element('button', { type: 'button' }, words);
    button.addEventListener('click', go);
    ways.push(button);
  };
  const next = nextPage(response);
  if (next) press('Next page', () => open(form, Object.fromEntries(next)).requestSubmit());
  const place = headers.get('Location');
  for (const other of place ? document.querySelectorAll('form.try[data-method=GET]') : []) {
    const path = other.dataset.path.replace(/{(\w+)}/g, '(?<$1>[^/]+)');
    const { groups } = new RegExp(`${path}$`).exec(place) ?? {};
    if (groups) press(`GET ${place}`, () => open(other, groups).querySelector('.send button').focus());
  }
  const [, code] = (status >= 400 && /"code"\s*:\s*"([a-z_]+)"/.exec(json)) || [];
  if (code) ways.push(element('a', { href: `/docs/errors#${code}` }, 'What to do about ', element('code', {}, code)));
  const create = document.querySelector(`form.try[data-method=POST][data-path="${form.dataset.path}"]`);
  if (status === 200 && json.trim() === '[]' && create) {
    ways.push(new URL(url).search ? 'No pet matches.' : 'No pets yet.');
    press('Add one', () => open(create, {}).querySelector('textarea').focus());
  }
  return ways;
}
