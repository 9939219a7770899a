// Helpers of the tests of Project settings → Domains.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { after } from 'node:test';

import { serveDns } from './dns.mjs';
import { launch, LOOKS, open, serve } from './harness.mjs';

export const HOST = 'sites.example.net';
export const RIGHT = { CNAME: HOST };

let browser;
after(() => browser?.close());

// A service, its DNS, and the page, until the test ends. `isReady`: plan and deploy allow domains. `isOpen`: the key
// was given.
export async function start(test, { isReady = true, domains = [], look = LOOKS.light, isOpen = true } = {}) {
  browser ??= await launch();
  const dns = await serveDns();
  const service = await serve('--admin', '127.0.0.1:0', '--platform-host', HOST, '--resolver', dns.address);
  let tab;
  test.after(async () => {
    // A route that still waits for its response must not fail the test.
    await tab?.page.unrouteAll({ behavior: 'ignoreErrors' });
    await tab?.close();
    await service.stop();
    dns.stop();
  });
  const key = await service.run('key', 'add', 'operator', '--admin');
  const run = (...words) => service.run(...words, '--platform-host', HOST, '--resolver', dns.address);
  if (isReady) {
    await service.run('site', 'plan', 'pro');
    await service.run('site', 'deploy');
  }
  for (const name of domains) await run('domain', 'add', name);
  tab = await open(browser, look);
  const { page } = tab;
  await page.goto(`${service.admin}/settings/domains`);
  if (isOpen) {
    await enter(page, key);
    await page.locator('#settings').waitFor();
  }
  return {
    ...tab,
    dns,
    service,
    key,
    run,
    card: (name) => page.locator('.card').filter({ has: page.getByRole('heading', { name }) }),
    // As if somebody came back to the page, which then looks at once.
    comeBack: () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))),
  };
}

export async function enter(page, key) {
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Open settings' }).click();
}

export const announced = (page, text) => page.locator('#announcement', { hasText: text }).waitFor({ state: 'attached' });
export const shows = (locator, text) => locator.filter({ hasText: text }).waitFor();

// Waits until the focus is on an element.
export async function holdsFocus(locator) {
  const page = locator.page();
  const isThere = (node) => node === document.activeElement;
  await page.waitForFunction(isThere, await locator.elementHandle(), { timeout: 30_000 }).catch(async () => {
    assert.fail(`the focus is on ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200))}`);
  });
}

// An HTTPS request for a name, as a proxy passes it on. Waits until the service has taken note of it.
export async function visit(service, name) {
  const headers = { Host: name, 'X-Forwarded-Proto': 'https' };
  const [response] = await once(request(service.url, { headers }).end(), 'response');
  await once(response.resume(), 'end');
  const deadline = Date.now() + 60_000;
  const isActive = async () => {
    const { domains } = JSON.parse(await service.run('domain', 'list', '--json'));
    return domains.some((domain) => domain.name === name && domain.state === 'active');
  };
  while (!(await isActive())) assert.ok(Date.now() < deadline, `${name} is active`);
}

// Chromium's own reports of responses from 400 on do not count.
export const unexpected = (said) => said.filter((line) => !line.includes('Failed to load resource'));
