// The code samples of the reference in a browser, and run as a reader would; those for curl run in tests/it as well.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { KEY, launch, LOOKS, open, serve, TARGET } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve(), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const RUN = {
  curl: (code) => ['sh', '-euc', code],
  JavaScript: (code) => ['node', '--input-type=module', '-e', code],
  Python: (code) => [join(TARGET, 'site', 'venv', 'bin', 'python'), '-c', code],
};

for (const [language, words] of Object.entries(RUN)) {
  test(`samples work: ${language}`, async () => {
    const { page, close } = await open(browser, { ...LOOKS.light, javaScriptEnabled: false });
    await page.goto(service.url);
    for (const operation of ['createPet', 'listPets', 'getPet']) {
      const figure = page.locator(`figure[data-operation=${operation}][data-language=${language}]`);
      const code = await figure.locator('code').textContent();
      const [program, ...rest] = words(code);
      const run = (key) => promisify(execFile)(program, rest, { env: { ...process.env, KEY: key } });
      const { stdout } = await run(KEY);
      assert.match(stdout, /Rex/, code);
      // A failure does not look like a success.
      if (language !== 'curl') await assert.rejects(run('wrong'), ({ stderr }) => /unauthorized|401/.test(stderr), code);
    }
    await close();
  });
}

// Blocks of code that one runs or saves; responses are only read.
const RUNNABLE = 'pre:not(.wrap, .fields)';

test('every block of code is copied with one press, and nothing but the code', async () => {
  const { page, said, close } = await open(browser);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${service.url}/docs/quickstart`);
  const blocks = await page.locator(RUNNABLE).all();
  assert.equal(await page.getByRole('button', { name: 'Copy code' }).count(), blocks.length);
  const status = page.locator('body > [role=status]');
  for (const [i, block] of blocks.entries()) {
    await status.evaluate((line) => line.replaceChildren());
    await page.locator('.code .copy').nth(i).press('Enter');
    await status.filter({ hasText: 'Copied' }).waitFor({ state: 'attached' });
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await block.textContent());
  }
  assert.ok((await blocks[1].textContent()).includes('KEY='));
  assert.deepEqual(said, []);
  await close();
});

test('every page has a copy button for every block of code', async () => {
  const { page, said, close } = await open(browser);
  await page.goto(`${service.url}/docs/quickstart`);
  const paths = await page.locator('nav a').evaluateAll((links) => links.map((link) => link.pathname).filter((path) => !path.endsWith('.json')));
  assert.ok(paths.includes('/') && paths.includes('/docs/errors'), `${paths}`);
  for (const path of new Set(paths)) {
    await page.goto(service.url + path);
    assert.equal(await page.locator('.code > .copy').count(), await page.locator(RUNNABLE).count(), path);
  }
  assert.deepEqual(said, []);
  await close();
});

test('a page without HTTPS copies as well', async () => {
  const { page, close } = await open(browser);
  await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await page.goto(`${service.url}/docs/quickstart`);
  await page.evaluate(() => document.addEventListener('copy', () => (document.title = String(getSelection()))));
  await page.locator('.code .copy').first().click();
  // The button says so for two seconds only.
  await page.locator('body > [role=status]', { hasText: 'Copied' }).waitFor({ state: 'attached' });
  assert.equal(await page.title(), 'petstore serve');
  await close();
});

test('a language is chosen once for all', async () => {
  const { page, said, close } = await open(browser);
  const shown = () => page.locator('.samples figure:not([hidden])').evaluateAll((all) => all.map((one) => one.dataset.language));
  await page.goto(`${service.url}/`);
  assert.deepEqual(await shown(), ['curl', 'curl', 'curl']);
  await page.locator('.languages button', { hasText: 'Python' }).nth(1).dispatchEvent('click');
  assert.deepEqual(await shown(), ['Python', 'Python', 'Python']);
  await page.reload();
  assert.deepEqual(await shown(), ['Python', 'Python', 'Python']);
  assert.equal(await page.locator('.languages button[aria-pressed=true]').first().textContent(), 'Python');
  assert.deepEqual(said, []);
  await close();
});
