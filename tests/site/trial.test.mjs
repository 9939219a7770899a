// The forms of the reference as a person uses them: what they send, what comes back, and the samples that follow them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { assertText, barriers, hold, KEY, launch, LOOKS, open, panel, serve, SHOTS } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve(), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const SMALL = { desktop: { viewport: { width: 1366, height: 700 } }, phone: LOOKS.phone };

// The reference with an operation open and, unless it is null, a key.
async function at(id, look = SMALL.desktop, key = KEY) {
  const tab = await open(browser, look);
  await tab.page.goto(`${service.url}/#${id}`);
  await tab.page.locator(`#${id}[open]`).waitFor();
  if (key) await tab.page.getByLabel('API key', { exact: true }).fill(key);
  return { ...tab, ...panel(tab.page, id) };
}

const ask = async (method, path, body) => {
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
  return (await fetch(`${service.url}/v1${path}`, { method, headers, body })).json();
};
const add = (name, status) => ask('POST', '/pets', JSON.stringify({ name, categoryId: 3, status }));

// True if all of it can be seen without scrolling.
const isInView = (locator) =>
  locator.evaluate((element) => {
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && top >= 0 && bottom <= innerHeight;
  });

test('an empty list offers to add a pet', async () => {
  const { page, send, block, status, said, close } = await at('listPets');
  await send.click();
  await assertText(status, '200 OK');
  await block.getByText('No pets yet.').waitFor();
  await block.getByLabel('status', { exact: true }).selectOption('sold');
  await send.click();
  await block.getByText('No pet matches.').waitFor();
  await block.getByRole('button', { name: 'Add one' }).click();
  await page.locator('#createPet[open]').waitFor();
  assert.ok(await panel(page, 'createPet').block.getByLabel('Request body').evaluate((field) => field === document.activeElement));
  assert.deepEqual(said, []);
  await close();
});

for (const [look, options] of Object.entries(SMALL)) {
  test(`the status comes into view, with its colour, the time and the size: ${look}`, async () => {
    const { send, status, page, block, close } = await at('createPet', options, null);
    const looks = [];
    for (const [key, body, expected] of [
      ['', '{}', '401 Unauthorized'],
      [KEY, '{}', '400 Bad Request'],
      [KEY, '{"name":"Rex","categoryId":3}', '201 Created'],
    ]) {
      await page.getByLabel('API key', { exact: true }).fill(key);
      await block.getByLabel('Request body').fill(body);
      await send.click();
      await assertText(status, expected);
      assert.match(await status.textContent(), /^\d{3} [A-Z][a-z ]+[A-Z]?[a-z]* [\d,]+ ms · [\d,]+ bytes$/);
      assert.ok(await isInView(status), expected);
      looks.push(await status.locator('.pill').evaluate((pill) => getComputedStyle(pill).color));
    }
    assert.ok(looks[0] === looks[1] && looks[1] !== looks[2], `${looks}`);
    assert.deepEqual(await barriers(page), []);
    await page.screenshot({ path: join(SHOTS, `tried-${look}.png`) });
    await close();
  });
}

test('each class of statuses has a colour of its own', async () => {
  const { page, send, status, close } = await at('listPets');
  const colours = new Set();
  for (const answer of [200, 304, 404, 503]) {
    await page.route('**/v1/pets', (route) => route.fulfill({ status: answer, body: '' }));
    await send.click();
    // Not its duration.
    await assertText(status, new RegExp(`^${answer}`));
    colours.add(await status.locator('.pill').evaluate((pill) => getComputedStyle(pill).color));
    assert.deepEqual(await barriers(page), []);
  }
  assert.equal(colours.size, 4);
  await close();
});

test('a response does not repeat a heading', async () => {
  const { send, block, status, close } = await at('listPets');
  const headings = () => block.locator('h4:visible').allTextContents();
  const before = await headings();
  await send.click();
  await assertText(status, '200 OK');
  assert.deepEqual(await headings(), before);
  assert.equal(new Set(before).size, before.length);
  await close();
});

test('a list leads to its next page', async () => {
  for (const name of ['A', 'B', 'C']) await add(name, 'pending');
  const { send, block, body, said, page, close } = await at('listPets');
  await block.getByLabel('limit', { exact: true }).fill('2');
  await block.getByLabel('status', { exact: true }).selectOption('pending');
  await send.click();
  await assertText(body, '"B"');
  const { id } = JSON.parse(await body.textContent())[1];
  const asked = page.waitForRequest(`${service.url}/v1/pets?limit=2&status=pending&after=${id}`);
  await block.getByRole('button', { name: 'Next page' }).click();
  await asked;
  await assertText(body, '"C"');
  assert.equal(await block.getByLabel('after', { exact: true }).inputValue(), String(id));
  assert.equal(await block.getByRole('button', { name: 'Next page' }).count(), 0);
  assert.deepEqual(said, []);
  await close();
});

test('a pet that was added can be got, and the documented header fields are open', async () => {
  const { page, send, block, status, body, said, close } = await at('createPet');
  await block.getByText('Header fields', { exact: true }).click();
  await block.getByLabel('Idempotency-Key').fill('mine');
  await send.click();
  await assertText(status, '201');
  const first = await body.textContent();
  await send.click();
  const fields = block.locator('.result > .fields');
  await assertText(fields, 'Idempotency-Replayed');
  assert.equal(await body.textContent(), first, 'the same pet');
  const { id } = JSON.parse(first);
  await block.getByRole('button', { name: `GET /v1/pets/${id}` }).click();
  await page.locator('#getPet[open]').waitFor();
  const one = panel(page, 'getPet');
  assert.equal(await one.block.getByLabel('petId', { exact: true }).inputValue(), String(id));
  await page.keyboard.press('Enter');
  await assertText(one.status, '200 OK');
  assert.equal(await one.body.textContent(), first);
  const names = await one.block.locator('.result > .fields dt').allTextContents();
  assert.deepEqual(names, ['Deprecation', 'ETag', 'Key-Scope', 'Link', 'Sunset', 'X-Request-Id']);
  assert.equal(await one.block.getByText('cache-control').isVisible(), false);
  await one.block.getByText('more header fields').click();
  assert.ok(await one.block.getByText('cache-control').isVisible());
  assert.deepEqual(said, []);
  await close();
});

test('a create has an Idempotency-Key from the start, and the same one until its outcome is known', async () => {
  const { page, send, block, status, body, stale, curl, close } = await at('createPet');
  const keys = [];
  page.on('request', (request) => request.postData() && keys.push(request.headers()['idempotency-key']));
  const press = async (expected) => {
    keys.length = 0;
    await send.click();
    await send.filter({ hasText: /^Send$/ }).and(page.locator('[aria-disabled=false]')).waitFor();
    await assertText(status, expected);
    return keys.at(-1);
  };
  const key = block.getByLabel('Idempotency-Key');
  const isGenerated = async () => (await curl.textContent()).includes('-H "Idempotency-Key: $(openssl rand -hex 16)"');
  assert.match(await key.inputValue(), /^[0-9a-f]{32}$/);
  assert.ok(await isGenerated());
  const first = await press('201');
  const pet = await body.textContent();
  assert.match(first, /^[0-9a-f]{32}$/);
  assert.equal(await stale.isVisible(), false, 'the new key changes nothing');
  assert.ok(await isGenerated());
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 503, json: { code: 'outcome_unknown' } }));
  const second = await press('503');
  assert.notEqual(second, first);
  assert.ok((await curl.textContent()).includes(`-H 'Idempotency-Key: ${second}'`), await curl.textContent());
  await page.unroute('**/v1/pets');
  assert.equal(await press('201'), second, 'the same pet');
  assert.notEqual(await body.textContent(), pet);
  await page.route('**/v1/pets', (route) => route.abort());
  const third = await press('No response');
  await block.getByLabel('Request body').fill('{"name":"Ada","categoryId":1}');
  await page.unroute('**/v1/pets');
  assert.notEqual(await press('201'), third, 'another pet');
  // A key of the reader's own stays, and none is sent if there is none.
  await block.getByText('Header fields', { exact: true }).click();
  await key.fill('my-own');
  assert.equal(await press('201'), 'my-own');
  assert.equal(await key.inputValue(), 'my-own');
  await key.fill('');
  assert.ok(!(await curl.textContent()).includes('Idempotency-Key'));
  assert.equal(await press('201'), undefined);
  await block.getByRole('button', { name: 'Generate' }).click();
  assert.match(await key.inputValue(), /^[0-9a-f]{32}$/);
  await close();
});

test('the code of an error leads to what it means', async () => {
  const { page, send, block, close } = await at('createPet');
  await block.getByLabel('Request body').fill('{');
  await send.click();
  const link = block.getByRole('link', { name: 'What to do about invalid_json' });
  await link.click();
  await page.waitForURL(`${service.url}/docs/errors#invalid_json`);
  await page.locator('#invalid_json').waitFor();
  await close();
});

test('a result is marked when the form has changed, and no longer when it is as it was', async () => {
  const { page, send, block, status, stale, close } = await at('createPet');
  const body = block.getByLabel('Request body');
  const was = await body.inputValue();
  await send.click();
  await assertText(status, '201');
  assert.equal(await stale.isVisible(), false);
  await body.fill('{}');
  assert.ok(await stale.isVisible());
  await body.fill(was);
  assert.equal(await stale.isVisible(), false);
  await page.getByLabel('API key', { exact: true }).fill('another');
  assert.ok(await stale.isVisible());
  await close();
});

test('while a request is under way the button says so, and there is no empty box', async () => {
  const { page, send, block, status, close } = await at('listPets', SMALL.desktop, null);
  const release = await hold(page, '**/v1/pets');
  const asked = page.waitForRequest('**/v1/pets');
  await send.click();
  await asked;
  assert.equal(await send.textContent(), 'Sending…');
  assert.equal(await block.locator('.result').isVisible(), false);
  await send.dispatchEvent('click');
  release();
  await assertText(status, '401');
  assert.equal(await send.textContent(), 'Send');
  await close();
});

test('Ctrl and Enter in the body sends it', async () => {
  const { page, block, status, close } = await at('createPet');
  await block.getByLabel('Request body').press('Control+Enter');
  await assertText(status, '201');
  await close();
});

test('whatever keeps a browser from a response is told in words of ours', async () => {
  const { page, send, block, status, close } = await at('createPet');
  await block.getByText('Header fields', { exact: true }).click();
  const key = block.getByLabel('Idempotency-Key');
  await key.fill('ключ');
  await send.click();
  await assertText(status, 'A browser cannot send this Idempotency-Key. Use letters, digits and punctuation from ASCII.');
  await key.fill('');
  await page.getByLabel('API key', { exact: true }).fill('ключ');
  await send.click();
  await assertText(status, 'A browser cannot send this API key.');
  await page.getByLabel('API key', { exact: true }).fill(KEY);

  await page.context().setOffline(true);
  await send.click();
  await assertText(status, 'You are offline.');
  await page.context().setOffline(false);

  await page.route('**/v1/pets', () => {});
  const asked = page.waitForRequest('**/v1/pets');
  await send.click();
  await asked;
  await page.evaluate(() => stop());
  await assertText(status, 'The request may have been carried out: look before you send it again.');
  await page.unroute('**/v1/pets');
  await page.route('**/v1/pets', (route) => route.abort('connectionrefused'));
  await send.click();
  await assertText(status, 'The service is not responding, or the connection broke.');
  assert.ok(!/fetch|TypeError|DOMException/.test(await status.textContent()));
  await close();
});

test('a response is shown to the letter, and never as markup', async () => {
  const { page, send, block, status, body, said, curl, close } = await at('createPet');
  const name = `it's "{[,:]}" <img src=x onerror=alert(1)>\\ & é`;
  await block.getByLabel('Request body').fill(`{"name": ${JSON.stringify(name)}, "categoryId": 9223372036854775807}`);
  await send.click();
  await assertText(status, '201');
  const shown = await body.textContent();
  assert.match(shown, /^{\n  "id": \d+,\n  "name": ".*",\n  "categoryId": 9223372036854775807\n}$/);
  assert.equal(JSON.parse(shown).name, name);
  assert.equal(await block.locator('.result img').count(), 0);
  assert.deepEqual(await body.locator('.n').allTextContents(), [String(JSON.parse(shown).id), '9223372036854775807']);

  // The sample does the same, to the digit.
  const { stdout } = await promisify(execFile)('sh', ['-c', await curl.textContent()], { env: { ...process.env, KEY } });
  assert.ok(stdout.includes('"categoryId":9223372036854775807') && JSON.parse(stdout).name === name, stdout);

  const one = panel(page, 'getPet');
  await one.summary.click();
  await one.send.click();
  assert.equal(await one.status.count(), 0, 'the browser asks for the id first');
  await one.block.getByLabel('petId', { exact: true }).fill('a/b');
  await one.send.click();
  await assertText(one.status, '404');
  assert.match(await one.body.textContent(), /^{\n  "code": "not_found",/);
  assert.equal(said.filter((line) => !line.includes('status of 404')).length, 0);
  await close();
});

test('the samples are those of the service until the form changes, and follow it then', async () => {
  const served = await (await fetch(service.url)).text();
  const { page, block, curl, said, close } = await at('listPets', SMALL.desktop, null);
  const figures = await page.locator('figure[data-operation]').evaluateAll((all) =>
    all.map((one) => [`${one.dataset.operation}" data-language="${one.dataset.language}`, one.querySelector('code').textContent]),
  );
  assert.equal(figures.length, 9);
  for (const [start, code] of figures) {
    const [, rest] = served.split(`data-operation="${start}"`);
    const plain = rest.split('<code>')[1].split('</code>')[0].replace(/<[^>]*>/g, '');
    const text = plain.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&#39;/g, "'").replace(/&amp;/g, '&');
    assert.equal(code, text);
  }
  await block.getByLabel('status', { exact: true }).selectOption('sold');
  await block.getByLabel('limit', { exact: true }).fill('3');
  const command = `curl '${service.url}/v1/pets?limit=3&status=sold' \\\n    -H `;
  assert.equal(await curl.textContent(), `${command}"Authorization: Bearer $KEY"`);
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  assert.equal(await curl.textContent(), `${command}"Authorization: Bearer $KEY"`, 'masked');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  assert.equal(await curl.textContent(), `${command}'Authorization: Bearer ${KEY}'`);
  await page.getByRole('button', { name: 'Hide', exact: true }).click();
  assert.ok(!(await curl.textContent()).includes(KEY));
  assert.deepEqual(said, []);
  await close();
});

test('a key that is refused is checked again, and Enter asks again too', async () => {
  const mine = await service.run('key', 'add', 'mine');
  const { page, send, status, close } = await at('listPets', SMALL.desktop, mine);
  const state = page.locator('#key-state');
  await page.locator('#key').press('Enter');
  await assertText(state, 'This key works.');
  await service.run('key', 'revoke', 'mine');
  await send.click();
  await assertText(status, '401');
  await assertText(state, "This key doesn't work.");
  await page.route('**/v1/pets?limit=1', (route) => route.fulfill({ status: 200, body: '[]' }));
  await page.locator('#key').press('Enter');
  await assertText(state, 'This key works.');
  await close();
});

test('a change and a deletion ask first, and a sample can have the key', async (t) => {
  const own = await serve('--experimental');
  t.after(() => own.stop());
  const { page, said, asked, close } = await open(browser);
  await page.goto(`${own.url}/#deletePet`);
  const { block, send, status } = panel(page, 'deletePet');
  const ofKey = block.getByText('$KEY is your API key');
  const withKey = block.getByLabel('with my key');
  assert.ok((await ofKey.isVisible()) && !(await withKey.isVisible()));
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  assert.ok(!(await ofKey.isVisible()));
  const samples = () => block.locator('.samples pre').allTextContents();
  assert.ok((await samples()).every((sample) => !sample.includes(KEY) && /KEY/.test(sample)));
  const tick = await withKey.boundingBox();
  await withKey.check();
  const box = await withKey.boundingBox();
  assert.ok(box.y === tick.y && box.width < 30, JSON.stringify(box));
  assert.equal(await page.locator('#key').getAttribute('type'), 'password');
  assert.ok((await page.locator('.first pre').first().textContent()).includes(KEY));
  assert.ok((await samples()).every((sample) => sample.includes(KEY) && !/environ|\$KEY|process/.test(sample)));
  await withKey.uncheck();
  assert.ok((await samples()).every((sample) => !sample.includes(KEY)));
  await withKey.check();
  await page.locator('#key').fill('');
  await page.locator('#key').fill(KEY);
  assert.ok(!(await withKey.isChecked()), 'nor the next key');
  await withKey.check();
  await page.getByRole('button', { name: 'Show' }).click();
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
  assert.equal(await page.locator('#key').getAttribute('type'), 'password');
  assert.ok((await samples()).every((sample) => !sample.includes(KEY)));

  const questions = [];
  let isSure = false;
  page.on('dialog', (dialog) => {
    questions.push(dialog.message());
    return isSure ? dialog.accept() : dialog.dismiss();
  });
  const sent = () => asked.filter((url) => url.includes('/v1/pets/')).length;
  await block.getByLabel('petId').fill(' ');
  await send.click();
  assert.deepEqual([questions, sent()], [[], 0]);
  await block.getByLabel('petId').fill(' 7');
  await send.click();
  assert.deepEqual([questions, sent()], [['Delete pet 7?'], 0]);
  isSure = true;
  await send.click();
  await assertText(status, '404 Not Found');
  assert.equal(sent(), 1);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await block.getByRole('button', { name: 'Copy response' }).click();
  await page.locator('#announcement', { hasText: 'Copied response' }).waitFor({ state: 'attached' });
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(JSON.parse(copied).code, 'not_found');
  assert.deepEqual(said.filter((line) => !line.includes('status of 404')), []);
  // A long id makes no button wider than a phone.
  await page.setViewportSize({ width: 360, height: 740 });
  await block.getByLabel('petId').fill('9'.repeat(90));
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  assert.ok((await send.boundingBox()).width <= 360);
  await close();
});
