// The essential ways through the site in Firefox; the other tests use Chromium.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ENTER, firefox } from './firefox.mjs';
import { KEY, KEY_MS, namesOf, reordered, serve, TYPED } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve('--experimental', '--admin', '0'), firefox()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

test('Firefox adds a pet in the reference, finds a page, and lists the pet', async () => {
  await browser.goto(`${service.url}/`);
  await browser.click('#key');
  await browser.press(KEY + ENTER);
  await browser.shows('#key-state', 'This key works');
  for (const [operation, status] of [['createPet', '201'], ['listPets', '200']]) {
    await browser.click(`#${operation} summary`);
    await browser.click(`#${operation} .send button`);
    await browser.shows(`#${operation} .result .status`, status);
  }
  await browser.evaluate('document.activeElement.blur()');
  await browser.press('/');
  await browser.until("document.querySelector('#search').open");
  await browser.press('retry safely');
  await browser.shows('#search-results', 'Retries');
  await browser.press(ENTER);
  await browser.until("location.pathname === '/docs/retries' && document.readyState === 'complete'");
  assert.deepEqual(browser.said, []);
});

test('Firefox changes the status of a pet on the page of pets', async () => {
  await browser.goto(`${service.url}/pets`);
  await browser.until("document.querySelector('tbody select')");
  await browser.evaluate("document.querySelector('tbody select').focus()");
  await browser.press('s');
  await browser.until("document.querySelector('tbody select').value === 'sold'");
  await browser.click('tbody .state button.main');
  await browser.shows('#state', 'is now');
  const pets = await fetch(`${service.url}/v1/pets`, { headers: { Authorization: `Bearer ${KEY}` } });
  assert.equal((await pets.json())[0].status, 'sold');
  assert.deepEqual(browser.said, []);
});

for (const way of ['after 300 ms each', 'in another order']) {
  test(`Firefox adds twenty names to the letter, answered ${way}`, async () => {
    const to = await serve('--ephemeral', '--delay', way.includes('300') ? '300' : '0');
    const front = await reordered(to);
    const { url } = way.includes('300') ? to : front;
    await browser.goto(`${url}/#key=${KEY}`);
    await browser.until("sessionStorage.getItem('key')");
    await browser.goto(`${url}/pets`);
    await browser.click('#add-open');
    await browser.evaluate("document.querySelector('#add-category').value = '1'");
    await browser.press(`${TYPED.join(ENTER)}${ENTER}and more`, KEY_MS);
    await browser.shows('#state', `Added: pet ${TYPED.length}, ${TYPED.at(-1)}.`);
    assert.deepEqual(await namesOf(to), TYPED);
    assert.equal(await browser.evaluate('document.activeElement.id + document.activeElement.value'), 'add-nameand more');
    assert.deepEqual(browser.said, []);
    await browser.evaluate("document.querySelector('#add-name').value = ''");
    front.stop();
    await to.stop();
  });
}

test('Firefox opens the page of domains', async () => {
  const key = await service.run('key', 'add', 'owner', '--admin');
  await browser.goto(`${service.admin}/settings/domains`);
  await browser.click('form input[type=password]');
  await browser.press(key + ENTER);
  await browser.shows('main', 'petstore site plan');
  assert.deepEqual(browser.said, []);
});
