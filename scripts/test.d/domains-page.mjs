// Tests the settings page in a real browser, with the service and the DNS server of scripts/test.d/domains. ADMIN is the admin address, ADMIN_KEY a key of the admin scope.
import assert from 'node:assert/strict';

import { launch, open } from '../../tests/site/harness.mjs';

const { ADMIN, ADMIN_KEY } = process.env;
const browser = await launch();
try {
  const { page, said, asked } = await open(browser);
  const card = (name) => page.getByRole('listitem', { name, exact: true });
  const shows = (locator, text) => locator.filter({ hasText: text }).waitFor();
  await page.goto(`${ADMIN}/settings/domains`);
  await page.getByLabel('API key', { exact: true }).fill(ADMIN_KEY);
  await page.getByRole('button', { name: 'Open settings' }).click();
  await card('example.com').waitFor();

  for (const name of ['shop.example.com', 'blog.example.com']) {
    await page.getByLabel('Domain', { exact: true }).fill(name);
    await page.getByRole('button', { name: 'Add domain' }).click();
    await shows(card(name), 'waiting for DNS');
  }
  await page.getByLabel('Domain', { exact: true }).fill('pair.example.com');
  await page.getByLabel('Also add').check();
  await page.getByRole('button', { name: 'Add domain' }).click();
  await shows(card('www.pair.example.com'), 'Redirects to pair.example.com (301)');
  const record = await card('shop.example.com').locator('.record code').allTextContents();
  assert.deepEqual(record, ['CNAME', 'shop', 'sites.example.net', '3600']);

  await card('shop.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('shop.example.com').locator('.state'), 'verified');
  await card('blog.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('blog.example.com'), '192.0.2.7');

  await page.getByRole('button', { name: 'More for shop.example.com' }).click();
  await page.getByRole('menuitem', { name: 'Make primary' }).click();
  await shows(card('shop.example.com').locator('.badge'), 'Primary');
  await page.getByLabel('From').selectOption('www.example.com');
  await page.getByLabel('To', { exact: true }).selectOption('shop.example.com');
  await page.getByRole('button', { name: 'Add redirect' }).click();
  await shows(card('www.example.com'), 'shop.example.com (301)');

  await page.getByRole('button', { name: 'More for blog.example.com' }).click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await card('blog.example.com').waitFor({ state: 'detached' });
  assert.deepEqual(said, []);
  assert.deepEqual(asked.filter((url) => !url.startsWith(`${ADMIN}/`)), []);
} finally {
  await browser.close();
}
