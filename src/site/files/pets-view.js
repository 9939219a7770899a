// The view: its search, filter, order, page and open pet are in the address, so that Back, links and reloads keep it.
import { canFind } from './pets-parts.js';

export const isId = (text) => /^-?\d+$/.test(text);
// The `after` of the page that begins with this pet.
export const before = (id) => String(BigInt(id) - 1n);
// `before` of the last page in the order of ids.
export const LAST = 'last';
const FIRST = 'first';
// What only a service with the search knows.
const FOUND = ['name', 'categoryId', 'order', 'before'];

// The view that the address names.
export function asked() {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  const view = { name: '', categoryId: '', status: '', order: '', limit: '20', after: '', before: '', ...given };
  if (!canFind) for (const name of FOUND) view[name] = '';
  const id = location.hash.slice(1);
  return { ...view, id: isId(id) ? id : '' };
}

export function address({ name, categoryId, status, order, limit, after, before, id }) {
  const all = { name, categoryId, status, order, limit: limit === '20' ? '' : limit, after, before };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value));
  return `/pets${query.size ? `?${query}` : ''}${id ? `#${id}` : ''}`;
}

// Where the last page of a view begins, and how the page before and after some pets is asked for.
const isNewest = ({ order }) => order === 'desc';
export const lastPage = (view) => (isNewest(view) ? { after: FIRST, before: '' } : { after: '', before: LAST });
export const pageAfter = (view, id) => (isNewest(view) ? { after: '', before: id } : { after: id, before: '' });
export const pageBefore = (view, id) => (isNewest(view) ? { after: id, before: '' } : { after: '', before: id });

// The query that asks for a view. The service goes up with `after` and down with `before`; a page against the order of the
// view is turned over.
export function queryOf(view) {
  const isDown = view.before ? true : !view.after && isNewest(view);
  const cursor = isDown ? { order: 'desc', before: view.before === LAST ? '' : view.before } : { after: view.after === FIRST ? '' : view.after };
  const { name, categoryId, status, limit } = view;
  const all = { name, categoryId, status, limit, ...cursor };
  return { query: Object.fromEntries(Object.entries(all).filter(([, value]) => value)), isTurned: isDown !== isNewest(view) };
}
