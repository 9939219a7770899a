// The API key in the reference: how it is entered, checked, kept and forgotten, and where it never goes.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertText, KEY, launch, open, panel, serve } from './harness.mjs';

let service;
let browser;
before(async () => {
  // Everything that the service could log, it logs.
  process.env.RUST_LOG = 'trace';
  [service, browser] = await Promise.all([serve(), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const field = (page) => page.getByLabel('API key', { exact: true });
const state = (page) => page.locator('#key-state');

async function reference(path = '/') {
  const tab = await open(browser);
  await tab.page.goto(service.url + path);
  await field(tab.page).waitFor();
  return tab;
}

// The status of a list with the key of the page.
async function list(page) {
  const { block, summary, send, status } = panel(page, 'listPets');
  if (!(await block.evaluate((operation) => operation.open))) await summary.click();
  const isList = (response) => response.url().endsWith('/v1/pets') && response.request().method() === 'GET';
  const reply = page.waitForResponse(isList);
  await send.click();
  const received = String((await reply).status());
  await send.filter({ hasText: 'Send' }).and(page.locator('[aria-disabled=false]')).waitFor();
  await assertText(status, received);
  return received;
}

test('a key is taken as people paste it', async () => {
  const { page, close } = await reference();
  for (const pasted of [
    ` ${KEY} `,
    `Bearer ${KEY}`,
    `Authorization: Bearer ${KEY}`,
    `authorization:bearer ${KEY}`,
    `-H "Authorization: Bearer ${KEY}"`,
    `"${KEY}"`,
    `'${KEY}'`,
    `export KEY=${KEY}`,
    `export KEY='${KEY}'`,
    `KEY="${KEY}"`,
    `PETSTORE_API_KEY=${KEY}`,
    `export K="${KEY}";`,
    `KEY = ${KEY}`,
    `X-Api-Key: ${KEY}`,
    `-H 'X-Api-Key: ${KEY}'`,
    `curl -i 'http://127.0.0.1/v1/pets' -H 'Authorization: Bearer ${KEY}' -d '{"name":"Rex"}'`,
    `'Authorization': \`Bearer ${KEY}\`,`,
    `{"Authorization":"Bearer ${KEY}"}`,
  ]) {
    await field(page).fill(pasted);
    await field(page).press('Enter');
    await assertText(state(page), 'This key works.').catch((error) => assert.fail(`${pasted}: ${error.message}`));
    assert.equal(await field(page).inputValue(), KEY, pasted);
  }
  // A key of somebody's own choice may look like this.
  for (const own of ['MINE=1', "it's", 'Bearer', 'a"b"']) {
    await field(page).fill(own);
    await field(page).blur();
    assert.equal(await field(page).inputValue(), own);
  }
  await close();
});

test('a key that is taken out of its field is sent no more', async () => {
  const { page, close } = await reference();
  for (const [key, status] of [[KEY, '200'], ['', '401'], ['wrong', '401'], [`Bearer ${KEY}`, '200']]) {
    await field(page).fill(key);
    assert.equal(await list(page), status, `"${key}"`);
  }
  await close();
});

test('a key is checked when it is entered, and nothing is added', async () => {
  const reader = await service.run('key', 'add', 'reader', '--read-only');
  const revoked = await service.run('key', 'add', 'gone');
  await service.run('key', 'revoke', 'gone');
  const { page, close } = await reference();
  const enter = async (key, expected) => {
    await field(page).fill(key);
    await field(page).blur();
    await assertText(state(page), expected);
  };
  await enter(KEY, 'This key works.');
  await enter(reader, 'This key works. It is read-only: it shows pets, and cannot add or change them.');
  for (const key of [revoked, 'petstore_unknown']) {
    await enter(key, "This key doesn't work. It may be mistyped, expired or revoked.");
  }
  await enter('ключ', 'This is no API key');
  // The next key that is entered makes the verdict void.
  await field(page).pressSequentially('x');
  assert.equal(await state(page).textContent(), '');
  await page.route('**/v1/pets?limit=1', (route) => route.fulfill({ status: 503, body: '' }));
  await enter('a', 'The service returned 503');
  await page.route('**/v1/pets?limit=1', (route) => route.abort());
  await enter('b', 'The service is not responding');
  await page.unroute('**/v1/pets?limit=1');
  // One request is enough, and none is refused.
  const sent = [];
  page.on('request', (request) => sent.push(request.method()));
  await enter(KEY, 'This key works.');
  assert.deepEqual(sent, ['GET']);
  const reply = await fetch(`${service.url}/v1/pets`, { headers: { Authorization: `Bearer ${KEY}` } });
  assert.deepEqual(await reply.json(), []);
  await close();
});

test('how to get a key is told until there is one, and the form of an operation leads to its field', async () => {
  const { page, close } = await reference('/#listPets');
  const hint = page.getByText('No key yet?');
  const { height } = await page.locator('.key').boundingBox();
  assert.ok(await hint.isVisible());
  await page.locator('#listPets').getByRole('link', { name: 'enter one above' }).click();
  assert.ok(await field(page).evaluate((element) => element === document.activeElement));
  await page.keyboard.type(KEY);
  await page.keyboard.press('Enter');
  await assertText(state(page), 'This key works.');
  assert.equal(await hint.isVisible(), false);
  assert.equal(await page.getByText('enter one above').locator('visible=true').count(), 0);
  assert.equal((await page.locator('.key').boundingBox()).height, height, 'nothing has moved');
  await page.reload();
  await page.getByRole('button', { name: 'Clear' }).waitFor();
  assert.equal(await hint.isVisible(), false);
  await field(page).fill('');
  assert.ok(await hint.isVisible());
  await close();
});

test('the tab keeps the key until it is cleared, and no other tab has it', async () => {
  const { page, close } = await reference();
  await field(page).fill(KEY);
  await page.goto(`${service.url}/docs/keys`);
  await page.goto(service.url);
  assert.equal(await field(page).inputValue(), KEY);
  assert.equal(await list(page), '200');
  const other = await page.context().newPage();
  await other.goto(service.url);
  assert.equal(await field(other).inputValue(), '');
  const kept = await page.evaluate(() => JSON.stringify([localStorage, document.cookie]));
  assert.ok(!kept.includes(KEY), kept);
  await page.getByRole('button', { name: 'Clear' }).click();
  await assertText(state(page), 'The key is cleared.');
  assert.equal(await page.evaluate(() => sessionStorage.getItem('key')), null);
  await page.reload();
  assert.equal(await field(page).inputValue(), '');
  assert.equal(await list(page), '401');
  await close();
});

test('the address of the first start brings the key, and is clean before anything else runs', async () => {
  const { page, asked, close } = await open(browser);
  const requests = [];
  page.on('request', (request) => requests.push(request));
  // Of all scripts, only the first one.
  await page.route('**/*.js', (route) => (route.request().url().endsWith('/theme.js') ? route.continue() : route.abort()));
  await page.goto(`${service.url}/#key=${KEY}`);
  const places = () => page.evaluate(() => [location.href, ...navigation.entries().map(({ url }) => url)]);
  assert.ok((await places()).every((url) => !url.includes('key=')), `${await places()}`);
  await page.unroute('**/*.js');

  await page.goto('about:blank');
  await page.goto(`${service.url}/#key=${KEY}`);
  await assertText(state(page), 'This key works.');
  assert.equal(await field(page).inputValue(), KEY);
  assert.ok((await places()).every((url) => !url.includes('key=')), `${await places()}`);
  assert.equal(await list(page), '200');
  // In a page that is open already.
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.evaluate((key) => (location.hash = `key=${key}`), KEY);
  await assertText(state(page), 'This key works.');
  assert.ok((await places()).every((url) => !url.includes('key=')), `${await places()}`);
  await panel(page, 'createPet').summary.click();
  await panel(page, 'createPet').send.click();
  await assertText(panel(page, 'createPet').status, '201');
  assert.ok(!(await page.locator('body').innerText()).includes(KEY));

  // It went to the service as the bearer token, and in no other way.
  assert.ok(asked.every((url) => !url.includes(KEY)));
  let carried = 0;
  for (const request of requests.filter((one) => one.url().startsWith('http'))) {
    const { authorization, ...others } = await request.allHeaders().catch(() => request.headers());
    assert.ok(!JSON.stringify([others, request.postData()]).includes(KEY), request.url());
    if (authorization) assert.equal(authorization, `Bearer ${KEY}`);
    carried += authorization ? 1 : 0;
  }
  assert.ok(carried >= 4, `${carried}`);
  await close();
  const log = service.logged();
  assert.match(log, /DEBUG/);
  assert.match(log, /POST \/v1\/pets 201/);
  assert.deepEqual(log.split('\n').filter((line) => line.includes(KEY)), []);
});

const device = (page) => page.evaluate(() => localStorage.getItem('key'));
const keeps = (page, key) => page.waitForFunction((key) => localStorage.getItem('key') === key, key);
const remember = (page) => page.getByLabel('Remember this key on this device');

test('the device keeps the key if the reader wants it, until it is cleared', async () => {
  const next = await service.run('key', 'add', 'next');
  const { page, close } = await reference('/pets');
  await field(page).fill(KEY);
  assert.equal(await device(page), null, 'off by default');
  await remember(page).check();
  await keeps(page, KEY);
  const other = await page.context().newPage();
  await other.goto(service.url);
  assert.equal(await field(other).inputValue(), KEY);
  assert.ok(await remember(other).isChecked());
  await field(other).fill('another');
  await field(other).press('Enter');
  await assertText(state(other), "This key doesn't work.");
  assert.equal(await device(page), KEY, 'a key that does not work takes no place');
  await field(other).fill(next);
  assert.equal(await device(page), KEY);
  await field(other).press('Enter');
  await keeps(page, next);
  await remember(other).uncheck();
  await keeps(page, null);
  await remember(other).check();
  await keeps(page, next);
  await field(other).fill('');
  await keeps(page, null);
  await field(other).fill(next);
  await field(other).press('Enter');
  await keeps(page, next);
  // A click beside the field is not lost, although the key is checked when the field is left.
  await field(page).fill(KEY);
  await page.getByRole('button', { name: 'Clear' }).click({ delay: 150 });
  assert.equal(await field(page).inputValue(), '');
  // A tab that the browser had kept does not bring back what was cleared elsewhere.
  await other.evaluate(() => {
    localStorage.removeItem('key');
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
  });
  await keeps(page, null);
  assert.ok(!(await remember(other).isChecked()));
  await remember(other).check();
  await keeps(page, next);
  // A tab with a key of its own neither forgets nor replaces it.
  await field(page).fill(KEY);
  await page.reload();
  assert.ok(!(await remember(page).isChecked()));
  assert.equal(await device(page), next);
  await other.getByRole('button', { name: 'Clear' }).click();
  await keeps(page, null);
  assert.ok(!(await remember(other).isChecked()));
  await close();
});

test('the tick says what the device keeps', async () => {
  const next = await service.run('key', 'add', 'arriving');
  const { page, close } = await reference();
  const changed = (key) => page.evaluate((key) => dispatchEvent(new StorageEvent('storage', { key })), key);
  await remember(page).check();
  await changed(null);
  assert.ok(await remember(page).isChecked(), 'the tick of an empty field stays');
  await field(page).fill('typed');
  await changed('theme');
  assert.ok(await remember(page).isChecked());
  await changed('key');
  assert.ok(!(await remember(page).isChecked()));
  await remember(page).check();
  await field(page).fill(KEY);
  await field(page).press('Enter');
  await keeps(page, KEY);
  await page.evaluate((key) => (location.hash = `key=${key}`), next);
  await page.waitForFunction((key) => document.querySelector('#key').value === key, next);
  await assertText(state(page), 'This key works.');
  assert.deepEqual([await remember(page).isChecked(), await device(page)], [false, KEY], 'a key that arrives takes no place');
  await page.evaluate(() => (Storage.prototype.setItem = null));
  await remember(page).click();
  await page.waitForFunction(() => !document.getElementById('key-remember').checked);
  await close();
});

test('beside deployed files the key is in memory alone', async () => {
  const { page, close } = await reference();
  await field(page).fill(KEY);
  await remember(page).check();
  const folder = mkdtempSync(join(tmpdir(), 'petstore-deploy-'));
  writeFileSync(join(folder, 'mine.html'), '<!doctype html><title>Mine</title>');
  await service.run('site', 'deploy', folder);
  rmSync(folder, { recursive: true });
  await page.reload();
  await page.getByText('It is forgotten when you leave or reload this page.').waitFor();
  assert.equal(await field(page).inputValue(), '', 'what was kept is forgotten');
  assert.equal(await device(page), null);
  assert.ok(!(await remember(page).isVisible()));
  await field(page).fill(KEY);
  assert.equal(await list(page), '200');
  await page.goto(`${service.url}/mine.html`);
  assert.ok(!(await page.evaluate(() => JSON.stringify([sessionStorage, localStorage, name]))).includes(KEY));
  await page.goto(`${service.url}/#key=${KEY}`);
  await assertText(state(page), 'This key works.');
  assert.equal(await page.evaluate(() => sessionStorage.getItem('key')), null);
  await service.run('site', 'deploy');
  await close();
});

// The script of a worker that takes the place of the reference.
const WORKER = `
  self.addEventListener('install', () => self.skipWaiting());
  self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
  self.addEventListener('fetch', (event) => {
    if (new URL(event.request.url).pathname !== '/') return;
    event.respondWith(new Response('<title>Forged</title>' + event.request.url, { headers: { 'Content-Type': 'text/html' } }));
  });`;

async function deployWorker() {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-deploy-'));
  writeFileSync(join(folder, 'sw.js'), WORKER);
  writeFileSync(join(folder, 'mine.html'), '<!doctype html><title>Mine</title>');
  await service.run('site', 'deploy', folder);
  rmSync(folder, { recursive: true });
}

// Registers the worker, and says what came of it.
const register = (page) =>
  page.evaluate(async () => {
    try {
      const { active } = await navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready);
      return active ? 'registered' : 'waiting';
    } catch (error) {
      return error.name;
    }
  });

test('a deployed script becomes no service worker, which would outlive its deploy', async () => {
  await deployWorker();
  const { page, close } = await open(browser);
  await page.goto(`${service.url}/mine.html`);
  assert.equal(await register(page), 'TypeError');
  await service.run('site', 'deploy');
  await page.goto(`${service.url}/#key=${KEY}`);
  await assertText(state(page), 'This key works.');
  assert.equal(await page.evaluate(() => navigator.serviceWorker.controller), null);
  await close();
});

test('a service worker from before goes once its script is gone', async () => {
  await deployWorker();
  const { page, close } = await open(browser);
  // An older version gave it away.
  const asked = (route) => route.fulfill({ body: WORKER, headers: { 'Content-Type': 'text/javascript' } });
  await page.context().route('**/sw.js', asked);
  await page.goto(`${service.url}/mine.html`);
  assert.equal(await register(page), 'registered');
  await page.goto(service.url);
  assert.equal(await page.title(), 'Forged');
  await page.context().unroute('**/sw.js', asked);
  await service.run('site', 'deploy');
  // As the browser does by itself a while after each visit.
  await page.evaluate(async () => (await navigator.serviceWorker.ready).update().catch(() => {}));
  await page.goto('about:blank');
  await page.goto(`${service.url}/#key=${KEY}`);
  await assertText(state(page), 'This key works.');
  assert.deepEqual(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
  await close();
});
