// The pets page with a second person, with changes that are taken back, and with several pets at once.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertText, barriers, hold, KEY, launch, LOOKS, open, serve, SHOTS } from './harness.mjs';

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

const api = (method, path, body, type = 'application/json') =>
  fetch(`${url}/v1${path}`, { method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': type } });
const patch = (id, body) => api('PATCH', `/pets/${id}`, body, 'application/merge-patch+json');
const one = async (id) => (await api('GET', `/pets/${id}`)).json();
async function added(names, status) {
  const ids = [];
  for (const name of names) ids.push((await (await api('POST', '/pets', { name, categoryId: 1, status })).json()).id);
  return ids;
}

async function at(path = '', look = LOOKS.light) {
  const tab = await open(browser, look);
  const { page } = tab;
  await page.addInitScript((key) => sessionStorage.getItem('key') ?? sessionStorage.setItem('key', key), KEY);
  await page.goto(`${url}/pets${path}`);
  await page.locator('.pets').waitFor();
  const row = (id) => page.locator(`tr[data-id="${id}"]`);
  return {
    ...tab,
    row,
    state: page.locator('#state'),
    news: page.locator('#news'),
    chosen: page.locator('#chosen'),
    detail: page.locator('.detail'),
    status: (id) => page.getByLabel(`Status of pet ${id}`, { exact: true }),
    save: (id) => row(id).getByRole('button', { name: 'Save', exact: true }),
    pick: (id) => page.getByLabel(`Select pet ${id}`, { exact: true }),
    button: (name) => page.getByRole('button', { name, exact: true }),
    // As if the tab came back.
    look: () => page.evaluate(() => dispatchEvent(new Event('focus'))),
  };
}

test('what others change arrives, is marked and told once, and takes no draft away', async () => {
  const [kim, lou, mo] = await added(['Kim', 'Lou', 'Mo'], 'available');
  const { page, row, news, status, look, detail, save, state, said, close } = await at(`?after=${kim - 1}`);
  await row(lou).getByRole('link').click();
  await detail.getByLabel('Name').fill('Louise');
  await status(mo).selectOption('pending');
  // One look sees all three.
  const release = await hold(page, /\/v1\/pets\?/);
  await patch(kim, { status: 'sold' });
  await patch(lou, { categoryId: 7 });
  await patch(mo, { status: 'sold' });
  release();
  await look();
  await row(kim).locator('td.fresh', { hasText: 'sold' }).waitFor();
  assert.equal(await status(kim).inputValue(), 'sold');
  await assertText(news, `Changed by others: pet ${kim}, Kim, pet ${lou}, Lou, pet ${mo}, Mo.`);
  assert.deepEqual([await detail.getByLabel('Name').inputValue(), await detail.getByLabel('Category').inputValue()], ['Louise', '7']);
  assert.deepEqual([await status(mo).inputValue(), await row(mo).locator('.stored').textContent()], ['pending', 'sold']);
  assert.deepEqual(await barriers(page), []);
  await row(kim).locator('.fresh').waitFor({ state: 'detached' });
  // A pet that was chosen before it was sold by somebody else is not sold back by a click.
  await save(mo).click();
  await assertText(state, 'Mo was changed meanwhile.');
  assert.equal((await one(mo)).status, 'sold');
  assert.deepEqual(said, []);
  await close();
});

test('by itself, the page is asked for again with its tag while it is seen', async () => {
  const { page, close } = await at();
  const answers = [];
  page.on('response', (response) => response.url().includes('/v1/') && answers.push([new URL(response.url()).pathname, response.status()]));
  await page.waitForResponse((response) => response.url().endsWith('/v1/store/inventory') && response.status() === 304);
  await page.waitForResponse((response) => response.url().includes('/v1/pets?') && response.status() === 304);
  assert.deepEqual(answers.filter(([, status]) => status !== 304 && status !== 200), []);
  await close();
});

test('nothing moves under the focus, a pet that no longer fits stays until one goes on, and a deleted one is struck out', async () => {
  const [nia, oz, pip] = await added(['Nia', 'Oz', 'Pip'], 'pending');
  const { page, row, look, status, state, save, button, said, close } = await at('?status=pending');
  await row(nia).getByRole('link').focus();
  const [extra] = await added(['Quinn'], 'pending');
  await patch(oz, { status: 'sold' });
  await api('DELETE', `/pets/${pip}`);
  await look();
  await assertText(row(oz), 'no longer in this list');
  await assertText(row(pip), 'deleted');
  assert.equal(await row(extra).count(), 0);
  // It stays when the next look brings nothing new.
  await Promise.all([page.waitForResponse(/status=pending/), look()]);
  await button('Show 1 pet more').click();
  await row(extra).waitFor();
  assert.ok(await row(oz).isVisible());
  // The same for what one changes oneself.
  await status(nia).selectOption('sold');
  await save(nia).click();
  await assertText(row(nia), 'no longer in this list');
  await assertText(state, 'Nia is now sold.');
  await page.locator('.filters a').nth(2).click();
  await row(nia).waitFor({ state: 'detached' });
  assert.equal(await row(oz).count() + (await row(pip).count()), 0);
  // Without a focus or a mouse in the table, rows come by themselves.
  await page.mouse.move(0, 0);
  await page.locator('#limit').focus();
  const [last] = await added(['Rio'], 'pending');
  await look();
  await row(last).waitFor();
  assert.deepEqual(said, []);
  await close();
});

test('a change and an added pet can be undone, and what this tab has changed looked up', async () => {
  const [sam] = await added(['Sam'], 'available');
  const { page, row, state, status, save, detail, button, said, close } = await at(`?after=${sam - 1}`);
  const undo = state.getByRole('button', { name: 'Undo' });
  await status(sam).selectOption('sold');
  await save(sam).click();
  const sent = page.waitForRequest((request) => request.method() === 'PATCH');
  await undo.click();
  assert.match((await sent).headers()['if-match'], /^"[0-9a-f]{32}"$/);
  await assertText(state, `Undone: pet ${sam}, Sam is as it was before.`);
  assert.deepEqual([await status(sam).inputValue(), (await one(sam)).status], ['available', 'available']);
  // Of two changes, the last one first.
  await row(sam).getByRole('link').click();
  await detail.getByLabel('Name').fill('Samuel');
  await detail.getByLabel('Category').fill('12');
  await detail.getByLabel('Name').press('Enter');
  await assertText(state, 'Samuel is saved.');
  await page.keyboard.press('Escape');
  // In the form of the key it changes no pet.
  await button('Change key').click();
  await page.locator('#key-remember').focus();
  await page.keyboard.press('Control+z');
  await page.keyboard.press('Escape');
  await assertText(state, 'Samuel is saved.');
  await page.keyboard.press('Control+z');
  await assertText(state, 'Undone');
  assert.deepEqual(await one(sam), { id: sam, name: 'Sam', categoryId: 1, status: 'available' });
  // Somebody else was there since.
  await status(sam).selectOption('pending');
  await save(sam).click();
  await assertText(state, 'Sam is now pending.');
  await patch(sam, { name: 'Sammy' });
  await undo.click();
  await assertText(state, `Not undone: pet ${sam}, Sam has been changed since.`);
  assert.equal((await one(sam)).status, 'pending');
  // An added pet.
  await button('Add a pet').click();
  await page.locator('#add-category').fill('1');
  await page.locator('#add-name').fill('Tess');
  await page.keyboard.press('Enter');
  await assertText(state, 'Added: pet');
  await undo.click();
  await assertText(state, 'Tess is deleted again.');
  assert.equal((await api('GET', `/pets/${sam + 1}`)).status, 404);
  // A reload forgets none of them.
  await page.reload();
  await page.locator('#changes summary', { hasText: 'Your changes (4)' }).click();
  await page.locator('#changes li').nth(3).waitFor();
  const lines = await page.locator('#changes li').allInnerTexts();
  assert.deepEqual(lines.map((line) => line.replace(/^\d\d:\d\d /, '')), [
    `pet ${sam + 1}, Tess: added (undone)`,
    `pet ${sam}, Sam: available → pending (too late)`,
    `pet ${sam}, Samuel: Sam → Samuel, 1 → 12 (undone)`,
    `pet ${sam}, Sam: available → sold (undone)`,
  ]);
  assert.deepEqual(await barriers(page), []);
  const kept = await page.evaluate(() => JSON.stringify(Object.entries(sessionStorage).filter(([name]) => name !== 'key')));
  assert.ok(!kept.includes(KEY));
  await button('Change key').click();
  await button('Clear').click();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('pets-changes')), '[]');
  assert.deepEqual(said.filter((line) => !line.includes('status of 412')), []);
  await close();
});

test('several pets are changed and deleted at once, and those that fail stay selected', async () => {
  const ids = await added(['Una', 'Vic', 'Wes', 'Xia', 'Yan']);
  const { page, row, state, pick, chosen, button, said, close } = await at(`?after=${ids[0] - 1}`);
  const set = (name) => chosen.getByRole('button', { name, exact: true });
  await pick(ids[0]).click();
  await pick(ids[3]).click({ modifiers: ['Shift'] });
  await assertText(chosen, '4 selected');
  await pick(ids[1]).click();
  await assertText(chosen, '3 selected');
  assert.deepEqual(await barriers(page), []);
  await page.screenshot({ path: join(SHOTS, 'pets-several.png') });
  // What is chosen while they are being saved stays.
  let release = await hold(page, `**/v1/pets/${ids[3]}`);
  await set('sold').click();
  await assertText(state, 'Saving 3 pets…');
  assert.equal(await page.locator('#unsaved').isVisible(), false);
  await pick(ids[4]).click();
  release();
  await assertText(state, 'Done: 3 pets saved.');
  await assertText(chosen, '1 selected');
  await pick(ids[4]).click();
  const statuses = async () => Promise.all(ids.map(async (id) => (await one(id)).status));
  assert.deepEqual(await statuses(), ['sold', undefined, 'sold', 'sold', undefined]);
  assert.equal(await chosen.isVisible(), false);
  await state.getByRole('button', { name: 'Undo' }).click();
  await assertText(state, 'Undone: 3 pets.');
  await page.waitForFunction((id) => document.querySelector(`tr[data-id="${id}"] select`).value === '', ids[0]);
  assert.deepEqual(await statuses(), [undefined, undefined, undefined, undefined, undefined]);

  // One of them is changed by somebody else.
  for (const id of ids.slice(0, 2)) await pick(id).click();
  // The page does not see it before it saves.
  const lists = /\/v1\/pets\?/;
  release = await hold(page, lists);
  await patch(ids[1], { status: 'pending' });
  await set('sold').click();
  release();
  await assertText(state, '1 of 2 pets saved.');
  await page.unroute(lists);
  await assertText(chosen, '1 selected');
  assert.ok(await pick(ids[1]).isChecked());
  await assertText(page.locator('.notice'), 'Meanwhile somebody changed the status: none → pending. Yours is sold.');
  await button('Take theirs').click();

  await pick(ids[2]).click();
  await chosen.getByLabel('Category of the selected pets').fill('x');
  await set('Set').click();
  await assertText(chosen, 'A category is a number, such as 3.');
  await chosen.getByLabel('Category of the selected pets').fill('5');
  await page.keyboard.press('Enter');
  await assertText(state, 'Done: 2 pets saved.');
  assert.deepEqual([(await one(ids[1])).categoryId, (await one(ids[2])).categoryId], [5, 5]);

  await page.getByLabel('Select all pets of this page').click();
  await pick(ids[0]).click();
  await pick(ids[1]).click();
  await pick(ids[2]).click();
  await set('Delete…').click();
  await assertText(page.locator('#question'), `Delete 2 pets: pet ${ids[3]}, Xia, pet ${ids[4]}, Yan?`);
  await page.locator('dialog .danger').click();
  await assertText(state, 'Deleted: 2 pets.');
  assert.equal(await row(ids[4]).count(), 0);
  assert.deepEqual(said.filter((line) => !line.includes('status of 412')), []);
  await close();
});

test('the pages follow what is shown, and a list that could not be read is read as soon as it can be', async () => {
  const ids = await added(Array.from({ length: 30 }, (_, i) => `Run ${i}`));
  const { page, row, look, state, button, close } = await at('?order=desc&name=Run');
  await row(ids[10]).waitFor();
  const [more] = await added(['Run more', 'Run again', 'Run far']);
  await look();
  await row(more).waitFor();
  await button('Next').click();
  await row(ids[0]).waitFor();
  const shown = await page.locator('tr[data-id]').evaluateAll((all) => all.map((one) => Number(one.dataset.id)));
  assert.deepEqual(shown, ids.slice(0, 13).toReversed());

  await page.route('**/v1/pets?*', (route) => route.abort());
  await button('First').click();
  await assertText(state, 'The service is not responding');
  await assertText(page.locator('#fresh'), 'Not up to date since');
  // A pet that is saved meanwhile belongs to the page that is shown.
  await page.getByLabel(`Status of pet ${ids[0]}`, { exact: true }).selectOption('sold');
  await row(ids[0]).getByRole('button', { name: 'Save', exact: true }).click();
  await assertText(state, 'is now sold');
  assert.equal(await row(ids[0]).getByText('no longer').count(), 0);
  await page.unroute('**/v1/pets?*');
  await row(more).waitFor();
  await close();
});

test('a list with a broken Link is the last one, and a 304 that nobody asked for a failure', async () => {
  await added(['Ovid']);
  const { page, row, state, button, said, close } = await at();
  const id = await page.locator('tr[data-id]').first().getAttribute('data-id');
  await page.route('**/v1/pets?*', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), link: '<http://[>; rel="next"' } });
  });
  await page.reload();
  await row(id).waitFor();
  await page.unroute('**/v1/pets?*');
  await page.route('**/v1/pets?*', (route) => route.fulfill({ status: 304 }));
  await page.getByLabel('Pets per page').selectOption('50');
  await assertText(state, 'Something between this page and the service answered in its place.');
  await button('Try again').click();
  await page.unroute('**/v1/pets?*');
  await page.locator('.table.old').waitFor({ state: 'detached' });
  await row(id).waitFor();
  assert.deepEqual(said, []);
  await close();
});

test('a key that may do more brings the fields for it', async () => {
  const [pia] = await added(['Pia']);
  const reader = await service.run('key', 'add', 'reader', '--read-only');
  const { page, row, status, pick, button, close } = await at(`?after=${pia - 1}`);
  await page.evaluate((key) => sessionStorage.setItem('key', key), reader);
  await page.reload();
  await page.getByText('Read-only key').waitFor();
  await row(pia).waitFor();
  assert.equal(await status(pia).count(), 0);
  await button('Change key').click();
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  await page.keyboard.press('Enter');
  await status(pia).waitFor();
  await pick(pia).waitFor();
  assert.equal(await page.locator('.pets th').count(), await row(pia).locator('td').count());
  await close();
});
