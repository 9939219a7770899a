// The pets page of a service that changes pets: in the row, by the form and after a question, each with If-Match.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertText, barriers, KEY, launch, LOOKS, open, serve, SHOTS } from './harness.mjs';

let service;
let browser;
let url;
before(async () => {
  [service, browser] = await Promise.all([serve('--experimental'), launch()]);
  url = service.url;
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const api = (method, path, body, type = 'application/json') => fetch(`${url}/v1${path}`, { method, body, headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': type } });
const patch = (id, body) => api('PATCH', `/pets/${id}`, JSON.stringify(body), 'application/merge-patch+json');
async function at(path = '', look = LOOKS.light) {
  const tab = await open(browser, look);
  await tab.page.addInitScript((key) => sessionStorage.setItem('key', key), KEY);
  await tab.page.goto(`${url}/pets${path}`);
  const { page } = tab;
  await page.locator('.pets').waitFor();
  const row = (id) => page.locator(`tr[data-id="${id}"]`);
  return { ...tab, row, state: page.locator('#state'), status: (id) => page.getByLabel(`Status of pet ${id}`), save: (id) => row(id).getByRole('button', { name: 'Save' }), detail: page.locator('.detail'), button: (name) => page.getByRole('button', { name, exact: true }) };
}
const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);
const one = async (id) => (await api('GET', `/pets/${id}`)).json();

test('row, edit, delete, counts, 412', async () => {
  for (const [name, status] of [['Rex', 'available'], ['Tom', undefined], ['Bella', 'sold'], ['two\nlines', 'pending']]) await api('POST', '/pets', JSON.stringify({ name, categoryId: 3, status }));
  const { page, row, state, status, save, detail, button, said, close } = await at();
  const filters = page.locator('.filters');
  await assertText(filters, 'All 4Available 1Pending 1Sold 1No status 1');
  assert.equal(await save(1).isVisible(), false);
  await status(1).selectOption('sold');
  assert.equal((await one(1)).status, 'available', 'nothing is sent before Save');
  const sent = page.waitForRequest((request) => request.method() === 'PATCH');
  await save(1).click();
  assert.match((await sent).headers()['if-match'], /^"[0-9a-f]{32}"$/);
  assert.equal((await sent).postData(), '{"status":"sold"}');
  await assertText(state, 'Done: pet 1, Rex is now sold.');
  assert.equal((await one(1)).status, 'sold');
  assert.ok(await isFocused(status(1)));
    await assertText(filters, 'All 4Available 0Pending 1Sold 2No status 1');
  await status(1).selectOption('none');
  await save(1).click();
  await assertText(state, 'Done: pet 1, Rex has no status now.');
  assert.equal('status' in (await one(1)), false);

  // changed by another before and during
  await status(2).selectOption('sold');
  await patch(2, { status: 'pending' });
  await save(2).click();
  await assertText(state, 'this pet was changed meanwhile. It is now pet 2, Tom, with the category 3 and the status pending.');
  assert.equal(await status(2).inputValue(), 'pending');
  await page.route('**/v1/pets/2', async (route) => {
    if (route.request().method() === 'PATCH') await patch(2, { name: 'Tim' });
    await route.continue();
  });
  await status(2).selectOption('sold');
  await save(2).click();
  await assertText(state, 'It is now pet 2, Tim, with');
  await page.unroute('**/v1/pets/2');
  assert.deepEqual((await one(2)), { id: 2, name: 'Tim', categoryId: 3, status: 'pending' });

  // edit: only what changed is sent
  await row(4).getByRole('link').click();
  await detail.getByLabel('Category').fill('9223372036854775807');
  const edited = page.waitForRequest((request) => request.method() === 'PATCH');
  await button('Save changes').click();
  assert.equal((await edited).postData(), '{"categoryId":9223372036854775807}');
  await assertText(state, 'Done: pet 4, two\\u000alines is saved.');
  assert.equal((await one(4)).name, 'two\nlines');
  await button('Save changes').click();
  await assertText(state, 'There is nothing to save.');
  await detail.getByLabel('Name').fill('Max');
  await detail.getByLabel('Name').press('Enter');
  await assertText(state, 'pet 4, Max is saved.');
  assert.deepEqual(await barriers(page), []);

  // delete
  await button('Delete…').click();
  assert.ok(await isFocused(button('Cancel')));
  assert.deepEqual(await barriers(page), []);
  await page.keyboard.press('Escape');
  assert.equal((await one(4)).name, 'Max');
  await button('Delete…').click();
  await button('Delete').click();
  await assertText(state, 'Deleted: pet 4, Max.');
  assert.equal((await api('GET', '/pets/4')).status, 404);
  assert.ok(await isFocused(row(3).getByRole('link')));
  assert.equal(new URL(page.url()).hash, '');
  await api('DELETE', '/pets/3');
  await status(3).selectOption('available');
  await save(3).click();
  await assertText(state, 'pet 3, Bella was already deleted.');
  assert.equal(await row(3).count(), 0);
  assert.deepEqual(said.filter((line) => !/status of (404|412)/.test(line)), []);

  // outcome unknown
  await page.route('**/v1/pets/1', async (route) => { if (route.request().method() === 'PATCH') { await route.fetch(); return route.abort('connectionreset'); } return route.continue(); });
  await status(1).selectOption('sold');
  await save(1).click();
  await assertText(state, 'It is unclear if the change was made.');
  await page.unroute('**/v1/pets/1');
  await save(1).click();
  await assertText(state, 'It is now pet 1, Rex, with the category 3 and the status sold.');
  await close();
});
for (const [look, options] of Object.entries({ ...LOOKS, forced: { ...LOOKS.light, forcedColors: 'active' }, zoom: { viewport: { width: 683, height: 384 } }, tiny: { viewport: { width: 320, height: 640 } } })) {
  test('open to all ' + look, async () => {
    const { page, detail, close } = await at('#2', options);
    await detail.waitFor();
    await page.getByLabel('Status of pet 1').selectOption('pending');
    assert.deepEqual(await barriers(page), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.screenshot({ path: join(SHOTS, `pets-change-${look}.png`), fullPage: true });
    await close();
  });
}

test('a check of the key that ends late takes nothing away', async () => {
  const { id } = await (await api('POST', '/pets', JSON.stringify({ name: 'Early', categoryId: 1 }))).json();
  const tab = await open(browser);
  const { page, said, close } = tab;
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route('**/v1/pets?limit=1', (route) => held.then(() => route.continue()));
  await page.addInitScript((key) => sessionStorage.setItem('key', key), KEY);
  await page.goto(`${url}/pets?after=${id - 1}#${id}`);
  const status = page.getByLabel(`Status of pet ${id}`);
  await status.selectOption('sold');
  const name = page.locator('.detail').getByLabel('Name');
  await name.fill('Late');
  await assertText(page.locator('#key-state'), 'Checking the key…');
  answer();
  await assertText(page.locator('#key-state'), 'This key works.');
  assert.deepEqual([await status.inputValue(), await name.inputValue(), await isFocused(name)], ['sold', 'Late', true]);
  assert.deepEqual(said, []);
  await close();
});

test('changes that are sent while another one is on its way wait for their turn', async () => {
  const ids = [];
  for (const name of ['Ava', 'Ben', 'Cleo']) ids.push((await (await api('POST', '/pets', JSON.stringify({ name, categoryId: 1 }))).json()).id);
  const [ava, ben, cleo] = ids;
  const { page, row, state, status, save, detail, button, said, close } = await at(`?after=${ava - 1}`);
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route(`**/v1/pets/${ava}`, (route) => held.then(() => route.continue()));
  await status(ava).selectOption('sold');
  await save(ava).click();
  await save(ava).click();
  await status(ben).selectOption('pending');
  await save(ben).click();
  await status(ava).selectOption('available');
  await save(ava).click();
  await row(cleo).getByRole('link').click();
  await button('Delete…').click();
  await button('Delete').click();
  await button('Add a pet').click();
  for (const [field, text] of [['category', '2'], ['name', 'Dora']]) await page.locator(`#add-${field}`).fill(text);
  await page.keyboard.press('Enter');
  await page.keyboard.type('Eve');
  answer();
  await assertText(state, `Added: pet ${cleo + 1}, Dora.`);
  assert.deepEqual([(await one(ava)).status, (await one(ben)).status, (await api('GET', `/pets/${cleo}`)).status], ['available', 'pending', 404]);
  assert.deepEqual([await page.locator('#add-name').inputValue(), await isFocused(page.locator('#add-name'))], ['Eve', true]);
  assert.equal(await detail.count(), 0);
  assert.deepEqual(said, []);
  await close();
});

test('what was typed into an open pet outlives a change of another pet, a conflict and an added pet', async () => {
  const [{ id }, other] = await Promise.all(['Mia', 'Leo'].map(async (name) => (await api('POST', '/pets', JSON.stringify({ name, categoryId: 1 }))).json()));
  const { page, row, state, status, save, detail, button, said, close } = await at(`?after=${Math.min(id, other.id) - 1}`);
  await row(id).getByRole('link').click();
  const name = detail.getByLabel('Name');
  await name.fill('Mimi');
  const third = await (await api('POST', '/pets', JSON.stringify({ name: 'Kit', categoryId: 1 }))).json();
  await status(other.id).selectOption('sold');
  await save(other.id).click();
  await assertText(state, `pet ${other.id}, Leo is now sold`);
  assert.equal(await name.inputValue(), 'Mimi');
  await patch(id, { categoryId: 2 });
  await button('Save changes').click();
  await assertText(state, 'Nothing was saved: this pet was changed meanwhile.');
  assert.deepEqual([await name.inputValue(), await detail.getByLabel('Category').inputValue()], ['Mimi', '2']);
  await button('Add a pet').click();
  await page.locator('#add-name').fill('Ida');
  await page.locator('#add-category').fill('1');
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  const isList = (address) => address.pathname === '/v1/pets';
  await page.route(isList, (route) => held.then(() => route.continue()));
  await page.locator('#add').getByRole('button', { name: 'Add' }).click();
  await name.focus();
  await page.keyboard.press('Home');
  await page.keyboard.type('My ');
  answer();
  await assertText(state, 'Added: ');
  await page.keyboard.type('own ');
  assert.equal(await name.inputValue(), 'My own Mimi');
  await page.unroute(isList);
  await name.fill('Mimi');
  await button('Save changes').click();
  await assertText(state, `pet ${id}, Mimi is saved`);
  assert.deepEqual(await one(id), { id, name: 'Mimi', categoryId: 2 });
  // What is saved is shown as the service has it.
  await detail.getByLabel('Category').fill('007');
  await button('Save changes').click();
  await assertText(state, 'is saved');
  assert.equal(await detail.getByLabel('Category').inputValue(), '7');
  // The pet that somebody else deleted is another one.
  await name.fill('Mia');
  await api('DELETE', `/pets/${third.id}`);
  await status(third.id).selectOption('sold');
  await save(third.id).click();
  await assertText(state, 'was already deleted');
  assert.equal(await name.inputValue(), 'Mia');
  await name.fill('Mimi');
  // Closing the row gives up what was typed.
  await name.fill('Other');
  for (const _ of [1, 2]) await row(id).getByRole('link').click();
  assert.equal(await name.inputValue(), 'Mimi');
  // Chromium's report of the pet that was deleted.
  assert.deepEqual(said.filter((line) => !line.includes('status of 404')), []);
  await close();
});

test('a change that ends late takes no focus, and a refused key no old counts', async () => {
  const [one, two] = await Promise.all(['Max', 'Moe'].map(async (name) => (await api('POST', '/pets', JSON.stringify({ name, categoryId: 1 }))).json()));
  const { page, row, state, status, save, detail, close } = await at(`?after=${Math.min(one.id, two.id) - 1}`);
  await row(one.id).getByRole('link').click();
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route(`**/v1/pets/${two.id}`, (route) => held.then(() => route.continue()));
  await status(two.id).selectOption('sold');
  await save(two.id).click();
  const name = detail.getByLabel('Name');
  await name.focus();
  await page.keyboard.press('End');
  await page.keyboard.type('imum');
  answer();
  await assertText(state, 'Moe is now sold');
  assert.deepEqual([await isFocused(name), await name.inputValue()], [true, 'Maximum']);

  const filters = page.locator('.filters');
  await filters.locator('a', { hasText: /All \d/ }).waitFor();
  let count;
  const counted = new Promise((resolve) => (count = resolve));
  const asked = page.waitForRequest('**/v1/store/inventory');
  await page.route('**/v1/store/inventory', (route) => counted.then(() => route.continue()));
  await page.getByLabel('Pets per page').selectOption('50');
  await asked;
  await page.locator('#key').fill('wrong');
  await page.locator('#key').press('Enter');
  await assertText(state, 'The API key is unknown, expired or revoked');
  const arrived = page.waitForResponse('**/v1/store/inventory');
  count();
  await (await arrived).finished();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  assert.deepEqual(await filters.locator('a:visible').allInnerTexts(), ['All', 'Available', 'Pending', 'Sold']);
  await close();
});
