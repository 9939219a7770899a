// The search of the pets page: by name, id, category and status, in both orders, page by page.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { assertText, barriers, hold, KEY, launch, LOOKS, open, serve } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve('--experimental'), launch()]);
  const names = ['Dora', 'Zora', 'Bella', 'RENÉ', 'x12', 'İnci'];
  for (let i = 0; i < 36; i += 1) {
    const pet = { name: names[i] ?? `Pet ${i}`, categoryId: i < 6 ? 7 : 1, status: ['available', 'sold', undefined][i % 3] };
    await fetch(`${service.url}/v1/pets`, { method: 'POST', body: JSON.stringify(pet), headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' } });
  }
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

async function at(path = '', to = service) {
  const tab = await open(browser, LOOKS.light);
  const { page } = tab;
  await page.addInitScript((key) => sessionStorage.setItem('key', key), KEY);
  await page.goto(`${to.url}/pets${path}`);
  const rows = page.locator('tr[data-id]');
  return {
    ...tab,
    rows,
    state: page.locator('#state'),
    place: page.locator('#place'),
    sought: page.getByLabel('Name or id'),
    ids: () => rows.evaluateAll((all) => all.map((row) => Number(row.dataset.id))),
    button: (name) => page.getByRole('button', { name, exact: true }),
    link: (name) => page.locator('.filters a', { hasText: name }),
  };
}
const range = (from, to) => Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => from + Math.sign(to - from) * i);

test('a pet is found by a part of its name, its id, its category or a lack of status', async () => {
  const { page, rows, state, place, sought, ids, button, link, said, close } = await at();
  await assertText(place, '1–20 of 36');
  await page.keyboard.press('/');
  await page.keyboard.type('ORA', { delay: 60 });
  await page.waitForURL(`${service.url}/pets?name=ORA`);
  await page.locator('mark', { hasText: /^ora$/ }).nth(1).waitFor();
  await assertText(place, '2 pets found');
  assert.deepEqual([await ids(), await page.locator('mark').allTextContents()], [[1, 2], ['ora', 'ora']]);
  assert.deepEqual(await barriers(page), []);
  await sought.fill('rené');
  await page.locator('mark', { hasText: 'RENÉ' }).waitFor();
  await sought.fill('Zorro');
  await assertText(state, 'No pet is named “Zorro”.');
  assert.deepEqual(await barriers(page), []);
  await button('Clear the search').click();
  await assertText(place, '1–20 of 36');
  await sought.fill('1');
  await link('Sold').click();
  await page.waitForURL('**/pets?name=1&status=sold');
  await assertText(place, '6 pets found');
  assert.ok(!(await ids()).includes(1), 'pet 1 is available');
  await link('All').click();
  await page.waitForURL('**/pets?name=1');
  await sought.fill('');
  await assertText(place, '1–20 of 36');
  // A number is an id first, and then a part of a name.
  await sought.fill('12');
  await page.waitForURL('**/pets?name=12');
  await assertText(place, '3 pets found');
  assert.deepEqual(await ids(), [12, 5, 13]);
  await page.goBack();
  await assertText(place, '1–20 of 36');
  assert.equal(await sought.inputValue(), '');
  await page.getByLabel('Filter by category').fill('7');
  await assertText(place, '6 pets found');
  await link('Sold').click();
  await assertText(place, '2 pets found');
  await sought.fill('Dora');
  await assertText(state, 'No sold pet of category 7 is named “Dora”.');
  await button('Look among all pets').click();
  await rows.first().waitFor();
  assert.deepEqual(await ids(), [1]);
  await page.goto(`${service.url}/pets?status=unset`);
  await assertText(place, '1–12 of 12');
  assert.equal(await link('No status').getAttribute('aria-current'), 'true');
  assert.match(await page.title(), /^no status · Pets · /);
  assert.deepEqual(said, []);
  await close();
});

test('the pages of both orders are the same pets, from either end', async () => {
  const { page, place, ids, button, said, close } = await at();
  await assertText(place, '1–20 of 36');
  await button('Last').click();
  await assertText(place, '17–36 of 36');
  assert.deepEqual(await ids(), range(17, 36));
  await button('Previous').click();
  await assertText(place, '1–20 of 36');
  await button('Next').click();
  await assertText(place, '21–36 of 36');
  await button('Previous').click();
  await assertText(place, '1–20 of 36');
  assert.equal(await button('Previous').getAttribute('aria-disabled'), 'true');
  await page.getByLabel('Order').selectOption('Newest first');
  await page.waitForURL('**/pets?order=desc');
  await page.locator('tr[data-id]').first().and(page.locator('[data-id="36"]')).waitFor();
  assert.deepEqual(await ids(), range(36, 17));
  await button('Next').click();
  await assertText(place, '21–36 of 36');
  assert.deepEqual(await ids(), range(16, 1));
  await button('First').click();
  await assertText(place, '1–20 of 36');
  await button('Last').click();
  await assertText(place, '17–36 of 36');
  assert.deepEqual(await ids(), range(20, 1));
  await button('Previous').click();
  await assertText(place, '1–20 of 36');
  // From a link, there is a way to both sides.
  await page.goto(`${service.url}/pets?after=10&limit=10`);
  await page.locator('tr[data-id="11"]').waitFor();
  await button('Previous').click();
  await page.locator('tr[data-id="1"]').waitFor();
  assert.deepEqual(await ids(), range(1, 10));
  await button('Next').click();
  await page.locator('tr[data-id="11"]').waitFor();
  assert.deepEqual(await ids(), range(11, 20));
  assert.deepEqual(said, []);
  await close();
});

test('a pet that was just added is in sight', async () => {
  const { page, rows, state, button, said, close } = await at();
  await button('Add a pet').click();
  await page.locator('#add-category').fill('1');
  await page.locator('#add-name').fill('Newest');
  await page.keyboard.press('Enter');
  await assertText(state, 'Added: pet 37, Newest.');
  await button('Show the newest').click();
  await page.waitForURL('**/pets?order=desc');
  await rows.first().and(page.locator('[data-id="37"]')).waitFor();
  assert.deepEqual(said, []);
  await close();
});

test('the page looks on until it is full, and can be stopped', async () => {
  const to = await serve('--ephemeral', '--experimental', '--sample', '50000');
  const add = (name) => fetch(`${to.url}/v1/pets`, { method: 'POST', body: JSON.stringify({ name, categoryId: 1 }), headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' } });
  await add('Needle');
  const { page, rows, state, place, sought, button, said, close } = await at('', to);
  await rows.first().waitFor();
  const isLater = (address) => address.searchParams.get('name') === 'needle' && address.searchParams.has('after');
  let release = await hold(page, isLater);
  await sought.fill('needle');
  await assertText(state, '0 pets found. Looking on from id 20000…');
  release();
  await assertText(place, '1 pet found');
  await page.unroute(isLater);
  release = await hold(page, isLater);
  await page.reload();
  await button('Stop').click();
  release();
  await assertText(state, 'Stopped. ');
  await page.unroute(isLater);
  await button('Look on').click();
  await assertText(place, '1 pet');
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('a service that does not know the search is not believed', async () => {
  const { page, rows, state, sought, button, close } = await at();
  await rows.first().waitFor();
  const older = async (route) => {
    const answer = await route.fetch({ url: route.request().url().replace(/name=\w+&?/, '') });
    return route.fulfill({ response: answer, headers: { ...answer.headers(), 'ignored-parameters': 'name' } });
  };
  await page.route('**/v1/pets?*name=*', older);
  await sought.fill('Zora');
  await assertText(state, 'This service cannot search.');
  assert.equal(await rows.count(), 0);
  await button('Show all pets').click();
  await rows.nth(19).waitFor();
  await close();
});

test('the search of the guide leads to a pet', async () => {
  const { page, sought, rows, close } = await at();
  await rows.first().waitFor();
  await page.getByRole('link', { name: 'API and guide' }).click();
  await page.waitForLoadState();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('Zora');
  await page.locator('#search [role=status]', { hasText: "The guide has nothing for 'Zora'." }).waitFor();
  await page.getByRole('option', { name: 'Look for a pet named “Zora”' }).click();
  await page.waitForURL('**/pets?name=Zora');
  await page.locator('mark', { hasText: 'Zora' }).waitFor();
  assert.equal(await sought.inputValue(), 'Zora');
  await close();
});
