// The search over pages, headings, error codes, settings and operations. `/` opens it, and Escape closes it.
import { element } from './elements.js';

const MOST = 12;
const opener = document.getElementById('search-open');
const dialog = document.getElementById('search');
const input = dialog.querySelector('input');
const list = document.getElementById('search-results');
const status = dialog.querySelector('[role=status]');
let index;
let chosen = 0;

const lower = (text) => text.toLowerCase();

// How well an entry fits: 0 is best, and undefined does not fit.
function rank({ title, page, text }, query, words) {
  const [name, all] = [lower(title), lower(`${title} ${page} ${text}`)];
  if (name === query) return 0;
  if (name.startsWith(query) || name.split(/[ -]+/).includes(query)) return 1;
  if (words.every((word) => name.includes(word))) return 2;
  if (words.every((word) => all.includes(word))) return 3;
  return undefined;
}

function find(query) {
  const words = query.split(/\s+/);
  const ranked = index.map((entry) => [rank(entry, query, words), entry]);
  const found = ranked.filter(([rank]) => rank !== undefined);
  return found.sort(([a], [b]) => a - b).map(([, entry]) => entry);
}

// The part of a text around the first word that was looked for.
function excerpt(text, query) {
  const at = text.lastIndexOf(' ', lower(text).indexOf(query.split(/\s+/)[0]) - 30) + 1;
  return (at ? '…' : '') + text.slice(at, at + 140);
}

function choose(number) {
  chosen = number;
  for (const [i, option] of [...list.children].entries()) {
    option.setAttribute('aria-selected', String(i === chosen));
    if (i !== chosen) continue;
    input.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  }
}

function show() {
  const query = lower(input.value.trim());
  const found = query && index ? find(query) : [];
  list.replaceChildren(
    ...found.slice(0, MOST).map((entry, i) => {
      const attributes = { id: `search-${i}`, href: entry.path, role: 'option', tabindex: '-1' };
      const [title, page] = [element('b', {}, entry.title), element('i', {}, entry.page)];
      return element('a', attributes, title, ' ', page, ' ', element('span', {}, excerpt(entry.text, query)));
    }),
  );
  list.hidden = found.length === 0;
  input.setAttribute('aria-expanded', String(!list.hidden));
  input.removeAttribute('aria-activedescendant');
  if (found.length) choose(0);
  if (query && index) status.textContent = found.length > MOST ? `${MOST} of ${found.length} results` : `${found.length} results`;
  else if (index) status.textContent = '';
}

async function open() {
  if (dialog.open) return;
  dialog.showModal();
  input.select();
  try {
    index ??= await (await fetch(new URL('./search.json', import.meta.url))).json();
    show();
  } catch {
    status.textContent = 'The search failed to load. Check your connection, and open it again.';
  }
}

opener.hidden = false;
opener.addEventListener('click', open);
input.addEventListener('input', show);
list.addEventListener('click', () => dialog.close());
dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
input.addEventListener('keydown', (event) => {
  const options = list.children;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key === 'Enter') options[chosen]?.click();
  // The browser would only clear the field.
  else if (event.key === 'Escape') dialog.close();
  else if (steps[event.key] && options.length) choose((chosen + steps[event.key] + options.length) % options.length);
  else return;
  event.preventDefault();
});
document.addEventListener('keydown', (event) => {
  const field = event.target.closest?.('input, textarea, select, [contenteditable]');
  // A closed dialog may keep the focus until the next frame.
  const isTyping = field && (field !== input || dialog.open);
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  open();
});
