// The redirects: a list, and a form for one more.
import { element } from './elements.js';
import { announce, busy, complain, show } from './settings-parts.js';

const find = (id) => document.getElementById(id);
const [section, title, list, form, from, to, status] = [
  'redirect-section',
  'redirects-title',
  'redirects',
  'redirect-form',
  'from',
  'to',
  'status',
].map(find);
const rows = new Map();

// Brings the list and the choices of the form up to date.
export function showRedirects({ domains, redirects, address }, page) {
  section.hidden = domains.length === 0 && redirects.length === 0;
  const wanted = new Map(redirects.map((redirect) => [JSON.stringify(redirect), redirect]));
  for (const [key, row] of rows) {
    if (wanted.has(key)) continue;
    row.remove();
    rows.delete(key);
  }
  [...wanted].forEach(([key, redirect], at) => {
    if (!rows.has(key)) rows.set(key, makeRow(redirect, page));
    if (list.children[at] !== rows.get(key)) list.insertBefore(rows.get(key), list.children[at] ?? null);
  });
  const names = domains.map(({ name, displayName }) => [name, displayName === name ? name : `${displayName} (${name})`]);
  choices(from, [['', 'Choose…'], ...names]);
  choices(to, [['', 'Choose…'], ...names, ...(address ? [[address, `${address} (platform)`]] : [])]);
}

// Keeps the choice if it still exists.
function choices(select, options) {
  const { value } = select;
  show(select, options, () => options.map(([of, text]) => element('option', { value: of }, text)));
  if (options.some(([of]) => of === value)) select.value = value;
}

function makeRow(redirect, page) {
  const { from: name, to: target, status: code } = redirect;
  const about = element('span', { class: 'unseen' }, ` the redirect from ${name}`);
  const button = element('button', { type: 'button' }, 'Remove', about);
  const arrow = element('span', {}, element('span', { 'aria-hidden': 'true' }, '→'), element('span', { class: 'unseen' }, 'to'));
  const what = element('span', { class: 'pair' }, element('code', {}, name), arrow, element('code', {}, target));
  const row = element('li', {}, what, element('span', { class: 'badge' }, String(code)), button);
  button.addEventListener('click', () =>
    attempt(button, 'redirects-problem', async () => {
      await page.call('DELETE', `redirects/${encodeURIComponent(name)}`);
      const next = (row.nextElementSibling ?? row.previousElementSibling)?.querySelector('button') ?? title;
      await page.refresh();
      if (document.activeElement === document.body || document.activeElement === title) next.focus();
      announce(`Removed the redirect from ${name}`);
    }),
  );
  return row;
}

async function attempt(button, place, run) {
  await busy(button, async () => {
    complain(find(place), null);
    try {
      await run();
    } catch (failure) {
      complain(find(place), failure);
    }
  });
}

// Has the form add redirects.
export function listen(page) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(form.querySelector('button'), 'redirect-problem', async () => {
      const added = { from: from.value, to: to.value, status: Number(status.value) };
      const lacking = [from, to].find((select) => !select.value);
      for (const select of [from, to]) select.removeAttribute('aria-invalid');
      if (lacking) {
        lacking.setAttribute('aria-invalid', 'true');
        lacking.focus();
        throw new Error(lacking === from ? 'Choose the domain to redirect.' : 'Choose the target of the redirect.');
      }
      await page.call('POST', 'redirects', added);
      form.reset();
      await page.refresh();
      announce(`${added.from} redirects to ${added.to}`);
    });
  });
}
