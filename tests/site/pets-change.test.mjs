// The pets page of a service that changes pets: in the row, by the form and after a question, each with If-Match.
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

const api = (method, path, body, type = 'application/json') => fetch(`${url}/v1${path}`, { method, body, headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': type } });
const patch = (id, body) => api('PATCH', `/pets/${id}`, JSON.stringify(body), 'application/merge-patch+json');
async function at(path = '', look = LOOKS.light) {
  const tab = await open(browser, look);
  await tab.page.addInitScript((key) => sessionStorage.setItem('key', key), KEY);
  await tab.page.goto(`${url}/pets${path}`);
  const { page } = tab;
  await page.locator('.pets').waitFor();
  const row = (id) => page.locator(`tr[data-id="${id}"]`);
  return { ...tab, row, state: page.locator('#state'), status: (id) => page.getByLabel(`Status of pet ${id}`, { exact: true }), save: (id) => row(id).getByRole('button', { name: 'Save', exact: true }), detail: page.locator('.detail'), saveOpen: page.locator('.detail .answers .main'), notice: page.locator('.notice'), unsaved: page.locator('#unsaved'), button: (name) => page.getByRole('button', { name, exact: true }) };
}
const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);
const added = async (...names) => {
  const ids = [];
  for (const name of names) ids.push((await (await api('POST', '/pets', JSON.stringify({ name, categoryId: 1 }))).json()).id);
  return ids;
};
const one = async (id) => (await api('GET', `/pets/${id}`)).json();

test('row, edit, delete, counts', async () => {
  for (const [name, status] of [['Rex', 'available'], ['Tom', undefined], ['Bella', 'sold'], ['two\nlines', 'pending']]) await api('POST', '/pets', JSON.stringify({ name, categoryId: 3, status }));
  const { page, row, state, status, save, detail, saveOpen, button, said, close } = await at();
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

  // Only what changed is sent.
  await row(4).getByRole('link').click();
  await detail.getByLabel('Category').fill('9223372036854775807');
  const edited = page.waitForRequest((request) => request.method() === 'PATCH');
  await saveOpen.click();
  assert.equal((await edited).postData(), '{"categoryId":9223372036854775807}');
  await assertText(state, 'Done: pet 4, two\\u000alines is saved.');
  assert.equal((await one(4)).name, 'two\nlines');
  await saveOpen.click();
  await assertText(state, 'There is nothing to save.');
  await detail.getByLabel('Name').fill('Max');
  await detail.getByLabel('Name').press('Enter');
  await assertText(state, 'pet 4, Max is saved.');
  assert.ok(await isFocused(detail.getByLabel('Name')));
  assert.deepEqual(await barriers(page), []);
  await detail.getByLabel('Category').fill('dogs');
  await saveOpen.click();
  await assertText(detail, 'A category is a number, such as 3.');
  assert.equal((await one(4)).categoryId, 9223372036854775807);
  await button('Cancel').click();
  assert.deepEqual([await detail.count(), await isFocused(row(4).getByRole('link'))], [0, true]);
  await page.keyboard.press('Enter');

  await button('Delete…').click();
  assert.ok(await isFocused(button('Cancel').last()));
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

  // The outcome is unknown, as no look sees it.
  const release = await hold(page, /\/v1\/pets\?/);
  await page.route('**/v1/pets/1', async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    await route.fetch();
    return route.abort('connectionreset');
  });
  await status(1).selectOption('sold');
  await save(1).click();
  await assertText(page.locator('.notice'), 'It is unclear if it was saved.');
  assert.equal(await row(1).locator('.stored').textContent(), 'none');
  release();
  await page.unroute('**/v1/pets/1');
  await page.locator('.notice').getByRole('button', { name: 'Try again' }).click();
  await assertText(state, 'Done: pet 1, Rex is now sold.');
  await close();
});

test('a conflict shows both values, and what does not touch is merged', async () => {
  const [id] = await added('Felix');
  const { page, row, state, status, save, notice, button, detail, saveOpen, said, close } = await at(`?after=${id - 1}`);
  await status(id).selectOption('sold');
  await patch(id, { status: 'pending' });
  await save(id).click();
  await assertText(state, `Nothing was saved: pet ${id}, Felix was changed meanwhile. Its row has both values: choose one.`);
  await assertText(notice, 'Meanwhile somebody changed the status: none → pending. Yours is sold.');
  assert.deepEqual(await barriers(page), []);
  await button('Take theirs').click();
  assert.deepEqual([await status(id).inputValue(), await notice.count(), await page.locator('#unsaved').isVisible()], ['pending', 0, false]);
  await status(id).selectOption('sold');
  await patch(id, { status: 'available' });
  await save(id).click();
  await button('Save mine').click();
  await assertText(state, 'Felix is now sold.');
  assert.equal((await one(id)).status, 'sold');
  // Nobody sells what somebody else has sold.
  await patch(id, { status: 'available' });
  await page.reload();
  await status(id).selectOption('sold');
  await patch(id, { status: 'sold' });
  await save(id).click();
  await assertText(state, 'was changed meanwhile. Yours is what it is already.');
  // The pet is changed before the request, and again on its way; no look sees the first change.
  const release = await hold(page, /\/v1\/pets\?/);
  await row(id).getByRole('link').click();
  await detail.getByLabel('Name').fill('White Felix');
  await patch(id, { categoryId: 9 });
  let times = 0;
  await page.route(`**/v1/pets/${id}`, async (route) => {
    if (route.request().method() === 'PATCH' && (times += 1) === 1) await patch(id, { status: 'pending' });
    await route.continue();
  });
  await detail.getByLabel('Name').press('Enter');
  await assertText(state, 'White Felix is saved. Somebody else has changed its category and status meanwhile.');
  release();
  assert.deepEqual(await one(id), { id, name: 'White Felix', categoryId: 9, status: 'pending' });
  assert.ok(await isFocused(detail.getByLabel('Name')));
  assert.equal(await saveOpen.textContent(), 'Save');
  // The next key after a conflict destroys nothing.
  await detail.getByLabel('Name').fill('Felix the Third');
  await patch(id, { name: 'Felix 2' });
  await page.keyboard.press('Enter');
  await assertText(notice, 'Meanwhile somebody changed the name: “White Felix” → “Felix 2”. Yours is “Felix the Third”.');
  assert.deepEqual([await isFocused(detail.getByLabel('Name')), await detail.getByLabel('Name').inputValue()], [true, 'Felix the Third']);
  await page.keyboard.press('Enter');
  await assertText(notice, 'Yours is “Felix the Third”.');
  assert.equal(await detail.getByLabel('Name').inputValue(), 'Felix the Third');
  assert.deepEqual(said.filter((line) => !/status of 412/.test(line)), []);
  await close();
});

test('what is not saved outlives every redraw, looks different, and is saved or discarded together', async () => {
  const ids = await added('Ada', 'Bo', 'Cy');
  const { page, row, state, status, detail, unsaved, button, said, close } = await at(`?after=${ids[0] - 1}`);
  const questions = [];
  page.on('dialog', (dialog) => {
    questions.push(dialog.type());
    return dialog.dismiss();
  });
  for (const id of ids.slice(0, 2)) await status(id).selectOption('sold');
  await row(ids[2]).getByRole('link').click();
  await detail.getByLabel('Name').fill('Cyrus');
  await assertText(unsaved, '3 pets have unsaved changes.');
  const look = (id) => row(id).evaluate((one) => [one.querySelector('.stored')?.textContent, one.querySelector('select').value, getComputedStyle(one.querySelector('select')).borderStyle]);
  assert.deepEqual(await look(ids[0]), ['none', 'sold', 'dashed']);
  await assertText(row(ids[2]).locator('.name'), 'Cy→ Cyrus');
  assert.deepEqual(await barriers(page), []);
  const isWhole = async () => {
    assert.deepEqual(await look(ids[0]), ['none', 'sold', 'dashed']);
    await assertText(unsaved, '3 pets have unsaved changes.');
  };
  await page.locator('.filters a').nth(3).click();
  await page.waitForURL('**/pets?status=sold');
  await assertText(unsaved, '3 pets have unsaved changes.');
  await page.goBack();
  await row(ids[0]).waitFor();
  await isWhole();
  await row(ids[1]).getByRole('link').click();
  await row(ids[2]).getByRole('link').click();
  assert.equal(await detail.getByLabel('Name').inputValue(), 'Cyrus');
  await page.keyboard.press('Escape');
  assert.equal(await detail.count(), 0);
  await page.locator('#limit').selectOption('50');
  await row(ids[0]).waitFor();
  await button('Add a pet').click();
  for (const [field, text] of [['category', '2'], ['name', 'Dora']]) await page.locator(`#add-${field}`).fill(text);
  await page.keyboard.press('Enter');
  await assertText(state, 'Added: ');
  await isWhole();
  const asked = page.waitForEvent('dialog');
  await page.close({ runBeforeUnload: true });
  await asked;
  assert.deepEqual(questions, ['beforeunload']);
  await button('Discard all').click();
  await assertText(state, 'Discarded: 3 pets.');
  assert.equal(await status(ids[0]).inputValue(), '');
  await button('Put them back').click();
  await isWhole();
  await patch(ids[1], { status: 'pending' });
  await button('Save all').click();
  await assertText(state, '2 of 3 pets saved. The others are marked in the table.');
  assert.deepEqual([(await one(ids[0])).status, (await one(ids[1])).status, (await one(ids[2])).name], ['sold', 'pending', 'Cyrus']);
  await assertText(unsaved, '1 pet has an unsaved change.');
  await unsaved.getByRole('button', { name: 'Discard' }).click();
  assert.equal(await unsaved.isVisible(), false);
  assert.deepEqual(said, []);
  await close();
});

for (const [look, options] of Object.entries({ ...LOOKS, forced: { ...LOOKS.light, forcedColors: 'active' }, zoom: { viewport: { width: 683, height: 384 } }, tiny: { viewport: { width: 320, height: 640 } } })) {
  test('open to all ' + look, async () => {
    const { page, detail, unsaved, close } = await at('#2', options);
    await detail.waitFor();
    await detail.getByLabel('pending').check();
    await detail.getByLabel('Category').fill('none');
    await page.getByLabel('Select pet 1', { exact: true }).check();
    await assertText(unsaved, '1 pet has an unsaved change.');
    await detail.getByLabel('Name').focus();
    await assertText(detail, 'A category is a number');
    assert.deepEqual(await barriers(page), []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.screenshot({ path: join(SHOTS, `pets-change-${look}.png`), fullPage: true });
    await close();
  });
}

// The boxes of what is written in a row, without the elements around them.
const crossing = (page) =>
  page.evaluate(() => {
    const found = [];
    const list = document.querySelector('.table').getBoundingClientRect();
    for (const row of document.querySelectorAll('tr[data-id]')) {
      const parts = [...row.querySelectorAll('.pick input, .name bdi, .mine, .category, .state select, .state button, .state .word, .state .stored, .id')];
      const boxes = parts.filter((part) => part.checkVisibility()).map((part) => [part.className || part.localName, part.getBoundingClientRect()]);
      boxes.forEach(([name, a], i) => {
        if (a.left < list.left - 1 || a.right > list.right + 1) found.push(`${row.dataset.id}: ${name} leaves the table`);
        for (const [other, b] of boxes.slice(i + 1)) {
          const isApart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
          const isInside = name.startsWith('number') && other === 'mine';
          if (!isApart && !isInside) found.push(`${row.dataset.id}: ${name} and ${other}`);
        }
      });
    }
    return found;
  });
for (const width of [320, 360, 375, 390, 412, 641, 700, 768, 1024]) {
  test(`in a row nothing covers anything at ${width} px`, async () => {
    const to = await serve('--ephemeral', '--experimental');
    const pets = [[54321, 'Rex', 3, 'available'], [99999, 'Wilhelmina the Second of Somewhere', 12345, 'pending'], [100000, 'W'.repeat(60), '9223372036854775807', 'sold'], ['9223372036854775807', 'x', 1, null]];
    const { page, close } = await open(browser, { viewport: { width, height: 700 } });
    const rows = pets.map(([id, name, categoryId, status]) => `{"id":${id},"name":"${name}","categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`);
    await page.route('**/v1/pets?**', (route) => route.fulfill({ body: `[${rows}]`, contentType: 'application/json' }));
    await page.goto(`${to.url}/pets#key=${KEY}`);
    await page.locator('.pets').waitFor();
    assert.deepEqual(await crossing(page), []);
    for (const [id] of pets.slice(0, 3)) {
      await page.locator(`tr[data-id="${id}"] .name a`).click();
      await page.locator('.detail').getByLabel(id === 100000 ? 'available' : 'sold').check();
      if (id === 99999) await page.locator('.detail').getByLabel('Category').fill('98765');
    }
    assert.deepEqual(await crossing(page), []);
    await page.screenshot({ path: join(SHOTS, `pets-rows-${width}.png`), fullPage: true });
    if (width < 640) {
      const small = await page.locator('main :is(button, select, input:not([type=radio], [type=checkbox]), .choice, .pick label, .name a):visible').evaluateAll((all) =>
        all.map((part) => [part.textContent || part.id, part.closest('.name') ? part.closest('tr').offsetHeight : part.offsetHeight, part.className]).filter(([, height, kind]) => height < 44 && kind !== 'copy'),
      );
      assert.deepEqual(small, [], 'what a finger touches has 44 px');
    }
    await close();
    await to.stop();
  });
}

test('a check of the key that ends late takes nothing away', async () => {
  const [id] = await added('Early');
  const tab = await open(browser);
  const { page, said, close } = tab;
  const release = await hold(page, '**/v1/pets?limit=1');
  await page.addInitScript((key) => sessionStorage.setItem('key', key), KEY);
  await page.goto(`${url}/pets?after=${id - 1}#${id}`);
  const status = page.getByLabel(`Status of pet ${id}`);
  await status.selectOption('sold');
  const name = page.locator('.detail').getByLabel('Name');
  await name.fill('Late');
  await assertText(page.locator('#key-line'), 'Checking the key…');
  release();
  await assertText(page.locator('#key-line'), 'Key may change pets');
  assert.deepEqual([await status.inputValue(), await name.inputValue(), await isFocused(name)], ['sold', 'Late', true]);
  assert.deepEqual(said, []);
  await close();
});

test('changes that are sent while another one is on its way wait for their turn', async () => {
  const [ava, ben, cleo] = await added('Ava', 'Ben', 'Cleo');
  const { page, row, state, status, save, detail, button, said, close } = await at(`?after=${ava - 1}`);
  let release = await hold(page, `**/v1/pets/${ava}`);
  await status(ava).selectOption('sold');
  await save(ava).click();
  await assertText(row(ava), 'Saving…');
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
  release();
  await assertText(state, `Added: pet ${cleo + 1}, Dora.`);
  assert.deepEqual([(await one(ava)).status, (await one(ben)).status, (await api('GET', `/pets/${cleo}`)).status], ['available', 'pending', 404]);
  assert.deepEqual([await page.locator('#add-name').inputValue(), await isFocused(page.locator('#add-name'))], ['Eve', true]);
  assert.equal(await detail.count(), 0);
  // What is chosen while it is being saved is not lost, even if it is what was there before.
  release = await hold(page, `**/v1/pets/${ben}`);
  await status(ben).selectOption('sold');
  await save(ben).click();
  await status(ben).selectOption('pending');
  release();
  await assertText(state, 'Ben is now sold.');
  assert.deepEqual([await status(ben).inputValue(), await row(ben).locator('.stored').textContent()], ['pending', 'sold']);
  assert.deepEqual(said, []);
  await close();
});

test('what was typed into an open pet outlives a change of another pet and an added pet', async () => {
  const [id, other, third] = await added('Mia', 'Leo', 'Kit');
  const { page, row, state, status, save, detail, saveOpen, button, said, close } = await at(`?after=${id - 1}`);
  await row(id).getByRole('link').click();
  const name = detail.getByLabel('Name');
  await name.fill('Mimi');
  await status(other).selectOption('sold');
  await save(other).click();
  await assertText(state, `pet ${other}, Leo is now sold`);
  assert.equal(await name.inputValue(), 'Mimi');
  await button('Add a pet').click();
  await page.locator('#add-name').fill('Ida');
  await page.locator('#add-category').fill('1');
  const isList = (address) => address.pathname === '/v1/pets';
  const release = await hold(page, isList);
  await page.locator('#add').getByRole('button', { name: 'Add' }).click();
  await name.focus();
  await page.keyboard.press('Home');
  await page.keyboard.type('My ');
  release();
  await assertText(state, 'Added: ');
  await page.keyboard.type('own ');
  assert.equal(await name.inputValue(), 'My own Mimi');
  await page.unroute(isList);
  await name.fill('Mimi');
  await saveOpen.click();
  await assertText(state, `pet ${id}, Mimi is saved`);
  // What is saved is shown as the service has it.
  await detail.getByLabel('Category').fill('007');
  await saveOpen.click();
  await assertText(state, 'is saved');
  await page.waitForFunction(() => document.querySelector('#edit-Category').value === '7');
  // The pet that somebody else deleted is another one.
  await name.fill('Mia');
  await api('DELETE', `/pets/${third}`);
  await status(third).selectOption('sold');
  await save(third).click();
  await assertText(state, 'was already deleted');
  assert.equal(await name.inputValue(), 'Mia');
  // Chromium's report of the pet that was deleted.
  assert.deepEqual(said.filter((line) => !line.includes('status of 404')), []);
  await close();
});

test('a change that ends late takes no focus, and a refused key no old counts', async () => {
  const [max, moe] = await added('Max', 'Moe');
  const { page, row, state, status, save, detail, button, close } = await at(`?after=${max - 1}`);
  await row(max).getByRole('link').click();
  let release = await hold(page, `**/v1/pets/${moe}`);
  await status(moe).selectOption('sold');
  await save(moe).click();
  const name = detail.getByLabel('Name');
  await name.focus();
  await page.keyboard.press('End');
  await page.keyboard.type('imum');
  release();
  await assertText(state, 'Moe is now sold');
  assert.deepEqual([await isFocused(name), await name.inputValue()], [true, 'Maximum']);

  const filters = page.locator('.filters');
  await filters.locator('a', { hasText: /All \d/ }).waitFor();
  release = await hold(page, '**/v1/store/inventory');
  const asked = page.waitForRequest('**/v1/store/inventory');
  await page.getByLabel('Pets per page').selectOption('50');
  await asked;
  await button('Change key').click();
  await page.locator('#key').fill('wrong');
  await page.locator('#key').press('Enter');
  await assertText(state, 'This key does not work.');
  const arrived = page.waitForResponse('**/v1/store/inventory');
  release();
  await (await arrived).finished();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  assert.deepEqual(await filters.locator('a:visible').allInnerTexts(), ['All', 'Available', 'Pending', 'Sold', 'No status']);
  await close();
});

test('what is typed after a Discard outlives the change that was under way', async () => {
  const [id, other] = await added('Ira', 'Jon');
  const { page, row, state, status, save, detail, saveOpen, close } = await at(`?after=${id - 1}`);
  await row(id).getByRole('link').click();
  const name = detail.getByLabel('Name');
  await name.fill('Irene');
  const release = await hold(page, `**/v1/pets/${id}`);
  await saveOpen.click();
  await row(id).getByRole('button', { name: 'Discard' }).click();
  await name.fill('Irma');
  await status(other).selectOption('sold');
  await save(other).click();
  await patch(id, { name: 'Iris' });
  release();
  await assertText(state, 'Jon is now sold');
  assert.equal(await name.inputValue(), 'Irma');
  assert.equal((await (await api('GET', `/pets/${id}`)).json()).name, 'Iris');
  await close();
});
