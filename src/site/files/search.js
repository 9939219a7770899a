// The search over pages, headings, error codes, settings, and operations with their parts. `/` and Ctrl+K open it, and
// Escape closes it.
import { element } from './elements.js';

const MOST = 12;
// The suggestions before a search, and after one that finds nothing.
const SUGGESTED = ['/docs/quickstart', '/docs/keys', '/docs/errors'];
const dialog = document.getElementById('search');
const input = dialog.querySelector('input');
const list = document.getElementById('search-results');
const status = dialog.querySelector('[role=status]');
// The index and the ranking, loaded when the search is first opened.
let find;
let group;
let suggested;
// Whether the service finds pets by their names, as one that counts them does.
let hasSearch = false;
// The number of the chosen result; -1 for none.
let chosen = -1;

const options = () => [...list.querySelectorAll('[role=option]')];

function choose(number) {
  chosen = number;
  if (chosen < 0) input.removeAttribute('aria-activedescendant');
  for (const [i, option] of options().entries()) {
    option.setAttribute('aria-selected', String(i === chosen));
    if (i !== chosen) continue;
    input.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  }
}

function say(query, found) {
  if (!query) return '';
  if (!found.length) return `The guide has nothing for '${query}'. Try one of these:`;
  if (found.length > MOST) return `${MOST} of ${found.length} results`;
  return found.length === 1 ? '1 result' : `${found.length} results`;
}

// The pet that somebody may mean. A service without the search finds it by its id.
function pets(query) {
  const isId = /^\d+$/.test(query);
  if (!query || !(isId || hasSearch)) return [];
  const title = isId ? `Look for pet ${query}` : `Look for a pet named “${query}”`;
  const path = isId ? `/pets#${query}` : `/pets?name=${encodeURIComponent(query)}`;
  return [{ path, page: 'Pets', title, text: '' }];
}

function show() {
  if (!find) return;
  const query = input.value.trim();
  const found = query ? find(query) : [];
  status.textContent = say(query, found);
  const offered = found.length ? found.slice(0, MOST) : [...pets(query), ...suggested];
  // The group of the best result comes first.
  const groups = Map.groupBy(offered, group);
  let number = 0;
  const option = (entry) => {
    const attributes = { id: `search-${number++}`, href: entry.path, role: 'option', tabindex: '-1' };
    const page = entry.page === entry.title ? '' : element('i', {}, entry.page);
    return element('a', attributes, element('b', {}, entry.title), ' ', page, ' ', element('span', {}, entry.text));
  };
  list.replaceChildren(
    ...[...groups].map(([name, entries], i) => {
      const heading = element('p', { id: `search-group-${i}`, role: 'presentation' }, name);
      return element('div', { role: 'group', 'aria-labelledby': heading.id }, heading, ...entries.map(option));
    }),
  );
  list.hidden = false;
  input.setAttribute('aria-expanded', 'true');
  // Nothing is chosen if nothing was found, so that Enter opens no page that nobody asked for.
  choose(query && !found.length ? -1 : 0);
}

async function load() {
  const index = fetch(new URL('./search.json', import.meta.url)).then((response) => response.json());
  const [rank, entries] = await Promise.all([import('./search-rank.js'), index]);
  const pages = SUGGESTED.map((path) => entries.find((entry) => entry.path === path));
  suggested = [...pages.slice(0, 2), ...entries.filter(rank.isOperation), ...pages.slice(2)];
  group = rank.group;
  hasSearch = entries.some(({ path }) => path === '/#getInventory');
  const prepared = rank.prepare(entries);
  find = (query) => rank.find(prepared, query);
}

async function open() {
  if (dialog.open) return;
  dialog.showModal();
  input.select();
  try {
    if (!find) await load();
    show();
  } catch {
    status.textContent = 'The search failed to load. Check your connection, and open it again.';
  }
}

for (const opener of document.querySelectorAll('#search-open, .search-open')) {
  opener.hidden = false;
  opener.addEventListener('click', open);
}
input.addEventListener('input', show);
list.addEventListener('click', () => dialog.close());
dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
input.addEventListener('keydown', (event) => {
  const all = options();
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key === 'Enter') all[chosen]?.click();
  // The browser would only clear the field.
  else if (event.key === 'Escape') dialog.close();
  else if (steps[event.key] && all.length) {
    const next = chosen + steps[event.key];
    choose(next < 0 ? all.length - 1 : next % all.length);
  } else return;
  event.preventDefault();
});
document.addEventListener('keydown', (event) => {
  const field = event.target.closest?.('input, textarea, select, [contenteditable]');
  // A closed dialog may keep the focus until the next frame.
  const isTyping = field && (field !== input || dialog.open);
  const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
  const isCommand = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
  if (!isSlash && !isCommand) return;
  event.preventDefault();
  open();
});
