// Where the pages send requests: to the service that serves them, or to the one that the operator has named.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { assertText, KEY, launch, LOOKS, open, panel, serve } from './harness.mjs';

const PRODUCTION = 'https://inventory.petstore.example.com';
const STAGING = 'https://inventory-staging.petstore.example.com';
const SHOP = 'http://shop.example';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([
    serve('--base-url', `${PRODUCTION}/v1`, '--staging-url', `${STAGING}/v1`),
    launch(),
  ]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

// The reference at an address, and the requests that went to other servers.
async function reference(origin = service.url, look = LOOKS.light) {
  const tab = await open(browser, look);
  const sent = [];
  // The service at a name that is not of this machine.
  for (const name of [SHOP, STAGING]) {
    const forward = async (route) => {
      const url = route.request().url();
      if (url.includes('/v1/')) sent.push(url);
      await route.fulfill({ response: await route.fetch({ url: url.replace(name, service.url) }) });
    };
    await tab.page.route(`${name}/**`, forward);
  }
  await tab.page.route(`${PRODUCTION}/**`, (route) => {
    sent.push(route.request().url());
    return route.fulfill({ status: 201, headers: { 'Access-Control-Allow-Origin': '*', 'Content-Type': 'application/json' }, body: '{"id":1}' });
  });
  await tab.page.goto(`${origin}/#createPet`);
  const create = panel(tab.page, 'createPet');
  await create.send.waitFor();
  // A request for an icon may still be on its way.
  const close = async () => {
    await tab.page.unrouteAll({ behavior: 'ignoreErrors' });
    await tab.close();
  };
  return { ...tab, close, sent, create, sends: tab.page.locator('#sends'), server: tab.page.getByLabel('Server') };
}

test('on this machine, requests go to this server, and to another only if it is chosen and said', async () => {
  const { page, sent, create, sends, server, said, close } = await reference();
  assert.equal(await sends.textContent(), `Requests go to ${service.url}/v1.`);
  assert.equal(await server.evaluate((select) => select.selectedOptions[0].textContent), 'This server: /v1');
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  await create.send.click();
  await assertText(create.status, '201 Created');
  assert.ok((await create.curl.textContent()).includes(`'${service.url}/v1/pets'`));
  const pets = await fetch(`${service.url}/v1/pets`, { headers: { Authorization: `Bearer ${KEY}` } });
  assert.equal((await pets.json()).length, 1);
  assert.deepEqual(sent, []);

  const colour = () => sends.evaluate((line) => getComputedStyle(line).color);
  const own = await colour();
  await server.selectOption(`${PRODUCTION}/v1`);
  const { host } = new URL(service.url);
  assert.equal(await sends.textContent(), `Requests go to ${PRODUCTION}/v1, not to this server, ${host}.`);
  assert.notEqual(await colour(), own);
  await assertText(create.send, `Send to ${new URL(PRODUCTION).host}`);
  await Promise.all([page.waitForRequest(`${PRODUCTION}/v1/pets`), create.send.click()]);
  await assertText(create.status, '201');
  assert.ok(sent.includes(`${PRODUCTION}/v1/pets`), `${sent}`);
  assert.deepEqual(said.filter((line) => !line.includes('status of 201')), []);
  await close();
});

test('at its own name, requests go to this server, and elsewhere to the first one', async () => {
  const staging = await reference(STAGING);
  assert.equal(await staging.sends.textContent(), `Requests go to ${STAGING}/v1.`);
  assert.deepEqual(await staging.server.locator('option').allTextContents(), [`Production: ${PRODUCTION}/v1`, `Staging: ${STAGING}/v1`]);
  await staging.close();
  const shop = await reference(SHOP);
  await assertText(shop.sends, `Requests go to ${PRODUCTION}/v1, not to this server, shop.example.`);
  assert.ok(await shop.server.isVisible());
  await shop.close();
});

test('if another server does not respond, it is named, and so is CORS', async () => {
  const { page, create, server, close } = await reference();
  await page.unroute(`${PRODUCTION}/**`);
  await page.route(`${PRODUCTION}/**`, (route) => route.abort('failed'));
  await server.selectOption(`${PRODUCTION}/v1`);
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  await page.getByLabel('API key', { exact: true }).blur();
  const why = `${PRODUCTION} is not responding, or does not allow requests from ${service.url} (CORS: start it with --allow-origin ${service.url}).`;
  await assertText(page.locator('#key-state'), `${why} The key was not checked.`);
  await create.send.click();
  await assertText(create.status, why);
  await close();
});

test('two servers with long names fit a phone', async () => {
  const { page, close } = await reference(service.url, LOOKS.phone);
  for (const path of ['/', '/pets']) {
    await page.goto(service.url + path);
    await page.getByLabel('Server').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, path);
  }
  await close();
});

test('a service without other servers has nothing to choose', async () => {
  const alone = await serve();
  const { page, close } = await open(browser);
  await page.goto(alone.url);
  await page.getByText(`Requests go to ${alone.url}/v1.`).waitFor();
  assert.equal(await page.getByLabel('Server').isVisible(), false);
  await close();
  await alone.stop();
});
