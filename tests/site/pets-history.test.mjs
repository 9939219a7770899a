// The history of a pet, and what was sold this month, on a service that records changes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { assertText, barriers, KEY, launch, LOOKS, open, serve } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve('--experimental'), launch()]);
  await service.run('changes', 'keep', '90d');
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const api = (method, path, body, to = service) =>
  fetch(`${to.url}/v1${path}`, { method, body: JSON.stringify(body), headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' } });
const add = async (pet, to) => (await api('POST', '/pets', { categoryId: 1, ...pet }, to)).json();

async function at(path = '', { key = KEY, look = LOOKS.light, to = service } = {}) {
  const tab = await open(browser, look);
  const { page } = tab;
  await page.addInitScript((key) => sessionStorage.getItem('key') ?? sessionStorage.setItem('key', key), key);
  await page.goto(`${to.url}/pets${path}`);
  await page.locator('.pets').waitFor();
  const detail = page.locator('.detail');
  return { ...tab, detail, history: detail.locator('details', { hasText: 'History' }), sold: page.locator('#sold') };
}

test('an open pet tells who has changed it and when, and what was before can be put back', async () => {
  const rex = await add({ name: 'Rex', categoryId: 3, status: 'available' });
  const key = (await service.run('key', 'add', 'web-shop')).trim();
  await fetch(`${service.url}/v1/pets/${rex.id}`, {
    method: 'PATCH',
    body: '{"status":"sold","name":"Rex II","categoryId":9007199254740993}',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
  });
  for (const look of [LOOKS.light, LOOKS.phone]) {
    const { page, detail, history, said, close } = await at(`#${rex.id}`, { look });
    await history.locator('summary').click();
    const [last, first] = [0, 1].map((i) => history.locator('li').nth(i));
    await assertText(last, 'by web-shop: Rex → Rex II, 3 → 9007199254740993, available → sold');
    await assertText(first, 'by PETSTORE_API_KEY: created');
    assert.match(await last.locator('time').getAttribute('datetime'), /^\d{4}-.*Z$/);
    assert.deepEqual(await barriers(page), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    assert.equal(await detail.getByLabel('Category').inputValue(), '9007199254740993');
    assert.deepEqual(said, []);
    await close();
  }
  const { page, detail, history, said, close } = await at(`#${rex.id}`);
  await history.locator('summary').click();
  // What somebody is typing is not overwritten.
  await detail.getByLabel('Name').fill('Max');
  await history.getByRole('button', { name: 'Put it back' }).click();
  await assertText(page.locator('#state'), 'first save or discard your own change');
  await detail.getByRole('button', { name: 'Cancel' }).click();
  await page.locator(`tr[data-id="${rex.id}"] a`).click();
  await history.getByRole('button', { name: 'Put it back' }).click();
  await assertText(page.locator('#state'), 'Done: ');
  assert.deepEqual(await (await api('GET', `/pets/${rex.id}`)).json(), rex);
  // The new change is there without another click, and can be taken back like any other.
  await history.locator('li').nth(2).waitFor();
  await assertText(history.locator('li').first(), 'sold → available');
  await page.locator('#state').getByRole('button', { name: 'Undo' }).click();
  await assertText(page.locator('#state'), 'Undone: ');
  assert.equal((await (await api('GET', `/pets/${rex.id}`)).json()).status, 'sold');
  assert.deepEqual(said, []);
  await close();
});

test('what is sold this month is counted, also while the page is open', async () => {
  // Not across the turn of a month, where the count begins anew.
  const month = (ahead) => new Date(Date.now() + ahead).getMonth();
  while (month(60_000) !== month(0)) await new Promise((resolve) => setTimeout(resolve, 1_000));
  const number = async (sold) => Number((await sold.textContent()).replace(/\D/g, ''));
  const { page, sold, said, close } = await at();
  await assertText(sold, 'Sold this month: ');
  const begun = await number(sold);
  const ids = [];
  for (let i = 0; i < 110; i += 1) ids.push((await add({ name: `pet ${i}`, status: i < 5 ? 'sold' : undefined })).id);
  await api('PATCH', `/pets/${ids[9]}`, { status: 'sold' });
  await api('PATCH', `/pets/${ids[9]}`, { name: 'still sold' });
  // Put back: it is not sold any more.
  await api('PATCH', `/pets/${ids[0]}`, { status: 'pending' });
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await page.waitForFunction((n) => document.querySelector('#sold').textContent.endsWith(` ${n}`), begun + 5);
  const again = await at();
  await assertText(again.sold, `Sold this month: ${begun + 5}`);
  assert.deepEqual([...said, ...again.said], []);
  await Promise.all([close(), again.close()]);
});

test('a key that only reads sees the history without names of keys, and puts nothing back', async () => {
  const { id } = await add({ name: 'Zoe', status: 'available' });
  await api('PATCH', `/pets/${id}`, { status: 'sold' });
  const reader = (await service.run('key', 'add', 'kiosk', '--read-only')).trim();
  const { page, history, said, close } = await at(`?after=${id - 1}#${id}`, { key: reader });
  await page.getByText('Read-only key').waitFor();
  await history.locator('summary').click();
  await assertText(history.locator('li').first(), ': available → sold');
  assert.ok(!(await history.textContent()).includes(' by '));
  assert.equal(await history.getByRole('button').count(), 0);
  assert.deepEqual(said, []);
  await close();
});

test('a service that records nothing has no history, and is not asked for it', async () => {
  const to = await serve('--experimental');
  await add({ name: 'Rex' }, to);
  const { page, detail, history, sold, said, asked, close } = await at('#1', { to });
  await detail.waitFor();
  await page.locator('.filters span').first().waitFor();
  assert.deepEqual([await history.count(), await sold.textContent()], [0, '']);
  assert.ok(!asked.some((url) => url.includes('/changes')));
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});
