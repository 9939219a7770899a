// The search and the filters: by name or id as one types, or by id alone; by category and by status; and the order.
import { filters, statusOf } from './pets-counts.js';
import { linkOf } from './pets-list.js';
import { EVERYTHING, go, load, START, whenViewed } from './pets-load.js';
import { canFind, int64, inventory, NO_CATEGORY, part, say } from './pets-parts.js';
import { asked, before, isId } from './pets-view.js';

const [find, sought, category, order, limit] = ['find', 'find-text', 'find-category', 'order', 'limit'].map(part);
const words = canFind ? 'Name or id' : 'Id';
sought.setAttribute('aria-label', words);
sought.placeholder = words;
category.hidden = !canFind;
filters.at(-1).hidden = !canFind;
// The pause of somebody who types.
const PAUSE_MS = 300;
let typing;

// What the fields of the search have, but for a category that is none.
function typed() {
  const [name, number] = [sought, category].map((field) => field.value.trim());
  return canFind ? { name, categoryId: int64(number) ?? '' } : {};
}
function search() {
  clearTimeout(typing);
  const text = sought.value.trim();
  if (!canFind) return isId(text) ? seek(text) : undefined;
  const { name, categoryId } = typed();
  const isWrong = category.value.trim() && !categoryId;
  if (isWrong) category.setAttribute('aria-invalid', 'true');
  else category.removeAttribute('aria-invalid');
  if (isWrong) return say('bad', NO_CATEGORY);
  const view = asked();
  if (name === view.name && categoryId === view.categoryId) return undefined;
  return go({ ...START, name, categoryId }, {}, view.name || view.categoryId ? 'replaceState' : 'pushState');
}
// Leads to a pet, unless somebody is elsewhere by then.
const seek = async (text) => {
  const id = String(BigInt(text));
  await go({ ...EVERYTHING, after: before(id), id });
  if (document.activeElement === sought) linkOf(id)?.focus();
};
find.addEventListener('input', () => {
  clearTimeout(typing);
  if (canFind) typing = setTimeout(search, PAUSE_MS);
});
find.addEventListener('submit', (event) => {
  event.preventDefault();
  search();
});
order.addEventListener('change', () => go({ ...START, ...typed(), order: order.value }));
limit.addEventListener('change', () => go({ ...START, ...typed(), limit: limit.value }));
inventory.querySelector('.filters').addEventListener('click', (event) => {
  const link = event.target.closest('a');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  clearTimeout(typing);
  go({ ...START, ...typed(), status: statusOf(link) });
});

// What somebody is typing stays, unless the browser goes back.
function fillSearch(view, isBack = false) {
  for (const [field, value] of [[sought, view.name], [category, view.categoryId], [order, view.order]]) {
    if (!isBack && field === document.activeElement) continue;
    field.value = value;
    field.removeAttribute('aria-invalid');
  }
}
whenViewed((view) => fillSearch(view));
addEventListener('popstate', () => {
  fillSearch(asked(), true);
  load();
});
