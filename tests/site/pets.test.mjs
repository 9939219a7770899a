// The pets page as a clerk uses it: its table, its address, its forms, and every state that it can be in.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { assertText, barriers, hold, KEY, KEY_MS, launch, LOOKS, namesOf, open, panel, reordered, serve, SHOTS, TYPED } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve(), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const BIDI = 'a\u202ecba';
const LONG = 'N'.repeat(3_000);
const NAMES = ['Rex', 'Tom', BIDI, '<img src=x onerror=alert(1)>', '', LONG, 'שלום', '🐕', 'tab\tand zero\u200b', 'Bella'];

async function add(to, pet) {
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
  const reply = await fetch(`${to.url}/v1/pets`, { method: 'POST', headers, body: typeof pet === 'string' ? pet : JSON.stringify(pet) });
  assert.equal(reply.status, 201);
}

// A service with this number of pets: a third are sold, and a third have no status.
async function filled(number) {
  const to = await serve();
  for (let i = 0; i < number; i += 1) {
    await add(to, { name: NAMES[i % NAMES.length], categoryId: i % 4, status: ['available', 'sold', undefined][i % 3] });
  }
  return to;
}

// The page with a key in its tab, as it is on the way from the reference.
async function at(to, path = '', { look = LOOKS.light, key = KEY } = {}) {
  const tab = await open(browser, look);
  const { page } = tab;
  if (key) await page.addInitScript((key) => location.protocol === 'http:' && (sessionStorage.getItem('key') ?? sessionStorage.setItem('key', key)), key);
  await page.goto(`${to.url}/pets${path}`);
  const rows = page.locator('.pets tbody tr:not(.detail)');
  return {
    ...tab,
    rows,
    state: page.locator('#state'),
    detail: page.locator('.detail'),
    ids: () => rows.evaluateAll((all) => all.map((row) => row.dataset.id)),
    link: (name) => page.getByRole('link', { name, exact: true }),
    button: (name) => page.getByRole('button', { name, exact: true }),
    field: (name) => page.getByLabel(name, { exact: true }),
    place: page.locator('#place'),
    // The key is one line as long as it works.
    async enter(key) {
      if (await page.locator('#key-change').isVisible()) await page.locator('#key-change').click();
      await page.getByLabel('API key', { exact: true }).fill(key);
      await page.keyboard.press('Enter');
    },
  };
}

const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);
const wider = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

test('without a key, the page asks for one and nobody else', async () => {
  const { page, state, rows, field, button, said, asked, close } = await at(service, '', { key: null });
  await assertText(state, 'Enter an API key to see the pets.');
  assert.equal(asked.filter((url) => url.includes('/v1/')).length, 0);
  assert.equal(await button('Add a pet').isVisible(), false);
  await field('API key').fill(KEY);
  assert.equal(asked.filter((url) => url.includes('/v1/')).length, 0, 'typing asks nobody');
  await page.keyboard.press('Enter');
  await assertText(state, 'No pets yet.');
  assert.ok(await isFocused(button('Change key')));
  await page.keyboard.press('Enter');
  assert.ok(await isFocused(field('API key')));
  await button('Clear').click();
  await assertText(state, 'Enter an API key to see the pets.');
  assert.equal(await rows.count(), 0);
  assert.deepEqual(said, []);
  await close();
});

test('an empty inventory says how to add a pet and how to import some', async () => {
  const { state, button, field, said, close } = await at(service);
  await assertText(state, 'No pets yet.');
  assert.equal(await state.getByRole('link', { name: 'import a file' }).getAttribute('href'), '/docs/data');
  await button('Add one').click();
  assert.ok(await isFocused(field('Name')));
  assert.deepEqual(said, []);
  await close();
});

test('a table shows every name to the letter, and never as markup', async () => {
  const to = await filled(NAMES.length);
  await add(to, `{"name":"exact","categoryId":9223372036854775807,"status":"pending"}`);
  const { page, rows, link, detail, said, close } = await at(to);
  await rows.nth(10).waitFor();
  const names = await page.locator('.name bdi').allTextContents();
  assert.deepEqual(names, [...NAMES.slice(0, 2), 'a\\u202ecba', NAMES[3], 'no name', `${LONG.slice(0, 200)}…`, ...NAMES.slice(6, 8), 'tab\\u0009and zero\\u200b', 'Bella', 'exact']);
  assert.equal(await page.locator('.pets img').count(), 0);
  assert.match(await rows.nth(10).textContent(), /9223372036854775807pending11$/);
  const heights = await rows.evaluateAll((all) => all.map((row) => row.offsetHeight));
  assert.ok(Math.max(...heights) <= 44, `${heights}`);
  await link('exact').click();
  await detail.locator('summary').click();
  await assertText(detail.locator('pre').first(), '"categoryId": 9223372036854775807');
  await link('a\\u202ecba').click();
  await detail.locator('summary').click();
  await assertText(detail.locator('pre').first(), '"name": "a\\u202ecba"');
  assert.equal(await detail.count(), 1);
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('the filter, the page and the open pet are in the address', async () => {
  const to = await filled(45);
  const list = await at(to);
  const leads = (path) => list.page.waitForURL(`${to.url}/pets${path}`);
  await assertText(list.place, '1–20');
  assert.equal(await list.button('Previous').getAttribute('aria-disabled'), 'true');
  await list.button('Next').press('Enter');
  await leads('?after=20');
  await assertText(list.place, '21–40');
  assert.ok(await isFocused(list.button('Next')));
  await list.page.evaluate(() => {
    scrollTo({ top: 99, behavior: 'instant' });
    return new Promise((resolve) => addEventListener('scrollend', () => setTimeout(resolve)));
  });
  await list.page.reload();
  await list.page.waitForFunction(() => scrollY === 99);
  await list.button('Next').click();
  await assertText(list.place, '41–45 of 45');
  assert.equal(await list.button('Next').getAttribute('aria-disabled'), 'true');
  await list.button('Previous').click();
  await leads('?after=20');
  await assertText(list.place, '21–40');
  await list.page.goBack();
  await assertText(list.place, '41–45 of 45');
  await list.page.reload();
  await assertText(list.place, '41–45 of 45');

  await list.link('Sold').click();
  await leads('?status=sold');
  await assertText(list.place, '1–15 of 15');
  assert.equal(await list.link('Sold').getAttribute('aria-current'), 'true');
  assert.equal(await list.page.locator('.filters [aria-current]').count(), 1);
  await list.field('Pets per page').selectOption('50');
  await leads('?status=sold&limit=50');
  await list.rows.nth(14).waitFor();
  assert.equal(await list.rows.count(), 15);
  await list.link('Pending').click();
  await assertText(list.state, 'No pet is pending.');
  await list.button('Show all pets').click();
  await leads('?limit=50');
  await list.rows.nth(44).waitFor();
  assert.equal((await list.ids()).length, 45);
  assert.deepEqual(list.said, []);
  await list.close();

  // An address from somewhere else.
  const linked = await at(to, '?limit=100&after=40');
  await assertText(linked.place, '5 pets');
  await linked.button('First').click();
  await assertText(linked.place, '1–45 of 45');
  await linked.close();
  const wrong = await at(to, '?status=blue');
  await assertText(wrong.state, 'This address asks for something that the list does not know.');
  await wrong.button('Show all pets').click();
  await assertText(wrong.place, '1–20');
  await wrong.close();
  await to.stop();
});

test('a pet has an address, wherever it is in the list', async () => {
  const to = await filled(45);
  const { page, rows, ids, state, detail, field, said, close } = await at(to, '?status=sold#44');
  await page.locator('tr[data-id="44"]').waitFor();
  await detail.locator('summary').click();
  const sample = detail.locator('pre').last();
  await assertText(sample, 'after=43&limit=1');
  assert.equal(page.url(), `${to.url}/pets?status=sold#44`, 'it is on the page that was asked for');
  const { stdout } = await promisify(execFile)('sh', ['-c', await sample.textContent()], { env: { ...process.env, KEY } });
  assert.equal(JSON.parse(stdout)[0].id, 44);

  await field('Id').fill('31');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${to.url}/pets?after=30#31`);
  await detail.waitFor();
  await rows.first().locator('a:focus').waitFor();
  await page.keyboard.press('Enter');
  await detail.waitFor({ state: 'detached' });
  await page.keyboard.press('Enter');
  await detail.waitFor();
  await page.goto('about:blank');
  await page.goto(`${to.url}/pets#45`);
  await page.waitForURL(`${to.url}/pets?after=44#45`);
  // The address comes before the pets.
  await detail.waitFor();
  assert.deepEqual(await ids(), ['45']);
  for (const [id, sentence] of [['46', 'There is no pet 46.'], ['9223372036854775807', 'There is no pet 9223372036854775807.']]) {
    await field('Id').fill(id);
    await page.keyboard.press('Enter');
    await assertText(state, sentence);
  }
  await to.run('pet', 'delete', '7');
  await field('Id').fill('7');
  await page.keyboard.press('Enter');
  await assertText(state, 'There is no pet 7. The next one is 8.');
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('a service that changes no pets here says what is missing, and a key that only reads too', async () => {
  const to = await filled(2);
  const { page, detail, link, said, close } = await at(to);
  await link('Rex').click();
  await assertText(detail, 'This service adds pets here, and does not change them. For that, whoever runs it starts it with --experimental.');
  assert.equal(await page.locator('.pets :is(select, input), .detail form').count(), 0);
  const reader = await to.run('key', 'add', 'reader', '--read-only');
  await page.evaluate((key) => sessionStorage.setItem('key', key), reader);
  // Also if the pets come before the key is checked.
  const release = await hold(page, '**/v1/pets?limit=1');
  await page.reload();
  await assertText(detail, 'This service adds pets here');
  release();
  await assertText(detail, 'This key can only read. Ask for one that may change pets.');
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('a pet is added once, however often its response is lost', async () => {
  const to = await serve();
  const { page, state, rows, field, button, close } = await at(to);
  await button('Add a pet').click();
  await field('Name').fill('Rex');
  await field('Category').fill('007');
  await field('Status').selectOption('pending');
  const keys = [];
  page.on('request', (request) => request.method() === 'POST' && keys.push(request.headers()['idempotency-key']));
  const lose = async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
    return route.abort('connectionreset');
  };
  await page.route('**/v1/pets', lose);
  const unadded = page.locator('#unadded');
  await button('Add').click();
  for (let i = 0; i < 2; i += 1) {
    await assertText(unadded, 'Rex: The service is not responding, or the connection broke. It is unclear if it was added.');
    const again = page.waitForRequest('**/v1/pets');
    await button('Try again').click();
    await again;
  }
  await button('Try again').waitFor();
  await page.unroute('**/v1/pets', lose);
  await button('Try again').click();
  await assertText(state, 'Already added, and only once: pet 1, Rex.');
  assert.deepEqual(await rows.allTextContents(), ['Rex7pending1']);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.deepEqual([keys.length, new Set(keys).size, await unadded.textContent()], [4, 1, '']);
  assert.ok(await isFocused(field('Name')));

  // Another pet does not take its place.
  await page.route('**/v1/pets', lose);
  await field('Name').fill('Tom');
  await button('Add').click();
  await assertText(unadded, 'It is unclear');
  assert.equal(await button('Put it back into the form').count(), 0, 'it may be there already');
  await page.unroute('**/v1/pets', lose);
  await field('Name').fill('Tim');
  await button('Add').click();
  await assertText(state, 'Added: pet 3, Tim.');
  await button('Try again').click();
  await assertText(state, 'Already added, and only once: pet 2, Tom.');
  assert.deepEqual(await rows.locator('.name').allTextContents(), ['Rex', 'Tom', 'Tim']);
  assert.equal(new Set(keys).size, 3);
  await state.getByRole('link').click();
  await page.locator('.detail').waitFor();

  // A field says itself what it takes.
  for (const wrong of ['9223372036854775808', 'cats', '']) {
    await field('Category').fill(wrong);
    await field('Name').fill('Max');
    await button('Add').click();
    await assertText(page.locator('#add-category-problem'), 'A category is a number, such as 3.');
    assert.deepEqual([await isFocused(field('Category')), await field('Name').inputValue()], [true, 'Max']);
  }
  await field('Category').fill('3');
  assert.equal(await page.locator('#add-category-problem').isVisible(), false);

  await page.route('**/v1/pets', (route) => route.fulfill({ status: 503, json: { code: 'overloaded', message: 'Later.', status: 503 } }));
  await button('Add').click();
  await assertText(unadded, 'Max: The service has too much to do. Try again in a moment.');
  await page.locator('.table[aria-busy]').waitFor({ state: 'detached' });
  await field('Name').fill('Ida');
  await button('Put it back into the form').click();
  await assertText(state, 'There is another pet in the form.');
  assert.equal(await field('Name').inputValue(), 'Ida');
  await field('Name').fill('');
  await button('Put it back into the form').click();
  assert.deepEqual([await field('Name').inputValue(), await field('Category').inputValue(), await unadded.textContent()], ['Max', '3', '']);
  await close();
  await to.stop();
});

test('a proxy that lost the response, or answers with a page of its own, makes no second pet', async () => {
  const to = await serve();
  const { page, state, field, button, close } = await at(to);
  const unadded = page.locator('#unadded');
  await button('Add a pet').click();
  await field('Category').fill('1');
  const statuses = [504, 502, 200];
  for (const status of statuses) {
    const answerBadly = async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return route.fulfill({ status, body: '<html>Sorry', contentType: 'text/html' });
    };
    await page.route('**/v1/pets', answerBadly);
    await field('Name').fill(`Pet ${status}`);
    await button('Add').click();
    await assertText(unadded, 'Something between this page and the service answered in its place.');
    await assertText(unadded, 'It is unclear if it was added.');
    assert.equal(await button('Put it back into the form').count(), 0);
    await page.unroute('**/v1/pets', answerBadly);
    await button('Try again').click();
    await assertText(state, `Already added, and only once: pet ${statuses.indexOf(status) + 1}, Pet ${status}.`);
  }
  assert.deepEqual(await namesOf(to), statuses.map((status) => `Pet ${status}`));
  await close();
  await to.stop();
});

test('a try whose outcome is unclear stays so, whatever the next one is answered', async () => {
  const to = await serve();
  const { page, state, field, button, close } = await at(to);
  const unadded = page.locator('#unadded');
  const again = unadded.getByRole('button', { name: 'Try again' });
  await button('Add a pet').click();
  await field('Category').fill('1');
  const json = (code, status) => ({ status, body: JSON.stringify({ code, message: 'No.', status }), contentType: 'application/json' });
  // Each is answered after the service has added the pet; none says so.
  const answers = {
    'no body': [{ status: 201, body: '' }],
    'an empty object': [{ status: 200, body: '{}', contentType: 'application/json' }],
    'no pet': [{ status: 201, body: '{"id":9}', contentType: 'application/json' }],
    'no content': [{ status: 204, body: '' }],
    'the code of a proxy': [{ status: 504, body: '{"code":504,"message":"timeout"}', contentType: 'application/json' }],
    'the word of a proxy': [{ status: 502, body: '{"code":"BAD_GATEWAY","status":502}', contentType: 'application/json' }],
    'a page that refuses': [{ status: 429, body: '<html>Later', contentType: 'text/html' }],
    'a refusal after a lost response': [{ status: 502, body: '' }, json('overloaded', 503), json('unauthorized', 401)],
  };
  for (const [at, [name, ofIt]] of Object.entries(answers).entries()) {
    const keys = new Set();
    const left = [...ofIt];
    const answerBadly = async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      keys.add(route.request().headers()['idempotency-key']);
      if (left.length === ofIt.length) await route.fetch();
      return route.fulfill(left.shift());
    };
    await page.route('**/v1/pets', answerBadly);
    await field('Name').fill(name);
    await button('Add').click();
    for (let tries = 1; tries <= ofIt.length; tries += 1) {
      await assertText(unadded, 'It is unclear if it was added.');
      assert.equal(await button('Put it back into the form').count(), 0, name);
      if (tries < ofIt.length) await again.click();
    }
    await page.unroute('**/v1/pets', answerBadly);
    await again.click();
    await assertText(state, `Already added, and only once: pet ${at + 1}, ${name}.`);
    assert.equal(keys.size, 1);
  }
  assert.deepEqual(await namesOf(to), Object.keys(answers));

  // The connection breaks while a request is on its way: the page was online when it was sent.
  await page.route('**/v1/pets', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await route.fetch();
    await page.context().setOffline(true);
    return route.abort('connectionreset');
  });
  await field('Name').fill('Rex');
  await button('Add').click();
  await assertText(unadded, 'Rex: You are offline. It is unclear if it was added.');
  await page.unroute('**/v1/pets');
  await again.click();
  await assertText(unadded, 'Rex: You are offline. It is unclear if it was added.');
  await page.context().setOffline(false);
  await again.click();
  await assertText(state, `Already added, and only once: pet ${Object.keys(answers).length + 1}, Rex.`);
  await close();
  await to.stop();
});

test('pets that wait go where they were added to, and are not left behind without a question', async () => {
  const other = await serve('--ephemeral', '--allow-origin', '*');
  const to = await serve('--ephemeral', '--staging-url', `${other.url}/v1`);
  const { page, state, field, button, close } = await at(to);
  const questions = [];
  page.on('dialog', (dialog) => {
    questions.push(dialog.type());
    return dialog.dismiss();
  });
  await button('Add a pet').click();
  await field('Category').fill('1');
  const release = await hold(page, `${to.url}/v1/pets`);
  for (const name of ['Rex', 'Tom', 'Ida']) {
    await field('Name').fill(name);
    await button('Add').click();
  }
  await button('Change key').click();
  const listed = page.waitForResponse(`${other.url}/v1/pets?limit=20`);
  await page.getByLabel('Server').selectOption(`${other.url}/v1`);
  await listed;
  const asked = page.waitForEvent('dialog');
  await page.close({ runBeforeUnload: true });
  await asked;
  release();
  await assertText(state, `Added: pet 3, Ida on ${to.url}/v1.`);
  assert.deepEqual([await namesOf(to), await namesOf(other), questions], [['Rex', 'Tom', 'Ida'], [], ['beforeunload']]);
  await close();
  await Promise.all([to.stop(), other.stop()]);
});

test('the last of the added pets is told, whichever list comes last', async () => {
  const to = await serve('--ephemeral');
  const { page, state, field, button, close } = await at(to);
  await assertText(state, 'No pets yet.');
  await button('Add a pet').click();
  await field('Category').fill('1');
  const lists = '**/v1/pets?limit=20';
  const release = [];
  const held = [0, 1].map((i) => new Promise((resolve) => (release[i] = resolve)));
  await page.route(lists, async (route) => {
    await held.shift();
    await route.continue();
  });
  for (const name of ['Rex', 'Tom']) {
    const asked = page.waitForRequest(lists);
    await field('Name').fill(name);
    await button('Add').click();
    await asked;
  }
  release[1]();
  await assertText(state, 'Added: pet 2, Tom.');
  const arrived = page.waitForResponse(lists);
  release[0]();
  await (await arrived).finished();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
  await assertText(state, 'Added: pet 2, Tom.');
  await close();
  await to.stop();
});

for (const way of ['after 300 ms each', 'in another order']) {
  test(`a typist adds twenty names to the letter, answered ${way}`, async () => {
    const to = await serve('--ephemeral', '--delay', way.includes('300') ? '300' : '0');
    const front = await reordered(to);
    const { page, state, button, field, said, close } = await at(way.includes('300') ? to : front);
    await button('Add a pet').click();
    await field('Category').fill('1');
    await field('Name').focus();
    for (const name of TYPED) {
      await page.keyboard.type(name, { delay: KEY_MS });
      await page.keyboard.press('Enter');
    }
    await page.keyboard.type('and more', { delay: KEY_MS });
    await assertText(state, `Added: pet ${TYPED.length}, ${TYPED.at(-1)}.`);
    assert.deepEqual(await namesOf(to), TYPED);
    assert.deepEqual([await field('Name').inputValue(), await isFocused(field('Name'))], ['and more', true]);
    assert.deepEqual(said, []);
    await close();
    front.stop();
    await to.stop();
  });
}

test('failures are sentences with a way on, and keep the rows', async () => {
  const to = await filled(3);
  const { page, state, place, rows, link, button, field, enter, close } = await at(to);
  await assertText(place, '1–3 of 3');
  const isOld = () => page.locator('.table.old').count();
  await page.context().setOffline(true);
  await link('Sold').click();
  await assertText(state, 'You are offline.');
  assert.deepEqual([await rows.count(), await isOld()], [3, 1]);
  // By itself.
  await page.context().setOffline(false);
  await assertText(place, '1–1 of 1');
  assert.equal(await isOld(), 0);

  const answer = (status, body) => page.route('**/v1/pets?**', (route) => route.fulfill({ status, body, contentType: 'application/json' }));
  await answer(503, '{"code":"overloaded","message":"Too many requests are waiting.","status":503}');
  await link('All').click();
  await assertText(state, 'The service has too much to do. Try again in a moment.');
  assert.equal(await state.getByText('HTTP 503').isVisible(), false, 'words of HTTP are in a fold');
  await state.locator('summary').click();
  await assertText(state, 'HTTP 503 Service Unavailable: Too many requests are waiting. What to do about overloaded');
  assert.equal(await rows.count(), 1);
  assert.deepEqual(await barriers(page), []);
  await answer(502, '<html>Bad gateway</html>');
  await button('Try again').click();
  await assertText(state, 'HTTP 502 Bad Gateway: The response is not from the API.');
  await answer(403, '{"code":"https_required","message":"Use HTTPS.","status":403}');
  await button('Try again').click();
  await assertText(state, 'HTTP 403 Forbidden: Use HTTPS.');
  assert.equal(await rows.count(), 0);
  await page.unroute('**/v1/pets?**');
  await button('Try again').click();
  await assertText(place, '1–3 of 3');

  await enter('wrong');
  await assertText(state, 'This key does not work. Enter another; what you typed stays.');
  assert.equal(await rows.count(), 0, 'pets that this key may not see');
  assert.ok(await field('API key').isVisible());
  assert.deepEqual(await barriers(page), []);
  await enter(KEY);
  await assertText(place, '1–3 of 3');

  const release = await hold(page, '**/v1/pets?**');
  await link('Sold').click();
  await page.locator('.table[aria-busy=true]').waitFor();
  assert.equal(await rows.count(), 3);
  release();
  await assertText(place, '1–1 of 1');
  assert.equal(await page.locator('.table[aria-busy]').count(), 0);
  await close();
  await to.stop();
});

test('who may only read is not asked to add', async () => {
  const to = await filled(1);
  const reader = await to.run('key', 'add', 'reader', '--read-only');
  const { place, button, page, enter, said, close } = await at(to, '', { key: reader });
  await page.getByText('Read-only key').waitFor();
  await assertText(place, '1–1 of 1');
  assert.equal(await button('Add a pet').isVisible(), false);
  await enter(KEY);
  await button('Add a pet').waitFor();
  await page.getByText('Key may change pets').waitFor();
  assert.deepEqual(said.filter((line) => !line.includes('status of 403')), []);
  await close();

  const copy = await serve('--read-only', '--database', to.database);
  const read = await at(copy);
  await read.page.getByText('Read-only key').waitFor();
  await assertText(read.place, '1–1 of 1');
  assert.equal(await read.button('Add a pet').isVisible(), false);
  await read.close();
  await copy.stop();
  await to.stop();
});

test('Escape brings back the key that worked', async () => {
  const { page, field, button, close } = await at(service);
  const line = page.locator('#key-line');
  await assertText(line, 'Key may change pets');
  for (const isSent of [false, true]) {
    await button('Change key').click();
    await page.keyboard.type('/bella');
    if (isSent) await page.keyboard.press('Enter');
    if (isSent) await assertText(page.locator('#key-state'), "This key doesn't work.");
    await button('Show').click();
    await field('API key').press('Escape');
    await assertText(line, 'Key may change pets');
    assert.equal(await field('API key').inputValue(), KEY);
    assert.equal(await field('API key').getAttribute('type'), 'password');
    assert.ok(await isFocused(button('Change key')));
    await assertText(page.locator('#state'), 'No pets yet.');
  }
  await close();
});

test('back on a page that the browser kept, another key is checked and its list loaded', async () => {
  const to = await filled(3);
  const reader = await to.run('key', 'add', 'reader', '--read-only');
  const { page, rows, place, field, close } = await at(to);
  await assertText(place, '1–3 of 3');
  const back = (use, key) =>
    page.evaluate(
      ([use, key]) => {
        if (use) sessionStorage[use]('key', key);
        else Storage.prototype.getItem = null;
        dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
      },
      [use, key],
    );
  const loaded = page.waitForResponse((response) => response.url().endsWith('/pets?limit=20') && response.status() === 200);
  await back('setItem', reader);
  assert.equal(await (await loaded).request().headerValue('Authorization'), `Bearer ${reader}`);
  await assertText(page.locator('#key-line'), 'Read-only key');
  await back('setItem', 'wrong');
  await assertText(page.locator('#key-state'), "This key doesn't work.");
  await rows.first().waitFor({ state: 'detached' });
  await back('setItem', KEY);
  await assertText(place, '1–3 of 3');
  await back();
  assert.deepEqual([await field('API key').inputValue(), await rows.count()], [KEY, 3], 'storage cannot be read');
  await close();
  await to.stop();
});

test('a click beside the open key form is not lost', async () => {
  const to = await filled(3);
  const { page, rows, detail, button, field, close } = await at(to);
  await assertText(page.locator('#key-line'), 'Key may change pets');
  const slow = { delay: 300 };
  await button('Change key').click();
  await rows.nth(1).getByRole('link').click(slow);
  await detail.waitFor();
  await page.locator('#key-line').waitFor();
  // The check of another key ends while the button of the mouse is down.
  await button('Change key').click();
  await field('API key').fill(await to.run('key', 'add', 'other'));
  await button('Add a pet').click(slow);
  await page.locator('#add').waitFor();
  await assertText(page.locator('#key-line'), 'Key may change pets');
  await close();
  await to.stop();
});

test('a key that is revoked is one line still, and the next one takes up what was typed', async () => {
  const to = await filled(1);
  const [first, second] = [await to.run('key', 'add', 'first'), await to.run('key', 'add', 'second')];
  const { page, state, place, rows, field, button, enter, close } = await at(to, '', { key: null });
  await enter(first);
  await assertText(place, '1–1 of 1');
  assert.equal(await field('API key').isVisible(), false);
  await button('Add a pet').click();
  await field('Name').fill('Half');
  await to.run('key', 'revoke', 'first');
  await field('Name').evaluate((element) => element.blur());
  const { y } = await rows.first().boundingBox();
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await assertText(state, 'This key no longer works. Enter another; what you typed stays.');
  await assertText(page.locator('#key-line'), 'This key no longer works · Change key');
  assert.equal(await field('API key').isVisible(), false);
  assert.ok(await isFocused(page.locator('body')));
  assert.equal((await rows.first().boundingBox()).y, y, 'nothing has moved');
  await button('Change key').click();
  assert.equal(await page.locator('#key-state').textContent(), '');
  await field('API key').press('Enter');
  await assertText(page.locator('#key-state'), "This key doesn't work.");
  await field('API key').fill(second);
  await page.keyboard.press('Enter');
  await assertText(place, '1–1 of 1');
  assert.equal(await field('Name').inputValue(), 'Half');
  await close();
  await to.stop();
});

test('on a phone a pet has two lines, and at 200 % nothing is cut', async () => {
  const to = await filled(12);
  const phone = await at(to, '#6', { look: LOOKS.phone });
  await phone.detail.waitFor();
  assert.ok((await wider(phone.page)) <= 0);
  const tops = await phone.rows.first().evaluate((row) =>
    ['name', 'state', 'category', 'id'].map((part) => {
      const { top, height } = row.querySelector(`.${part}`).getBoundingClientRect();
      return Math.round(top + height / 2);
    }),
  );
  const [name, state, category, id] = tops;
  assert.ok(Math.abs(name - state) <= 6 && Math.abs(category - id) <= 3 && category > name, `${tops}`);
  const heights = await phone.rows.evaluateAll((all) => all.filter((row) => row.dataset.id !== '6').map((row) => row.offsetHeight));
  assert.ok(Math.max(...heights) <= 76, `${heights}`);
  assert.deepEqual(await barriers(phone.page), []);
  await phone.page.screenshot({ path: join(SHOTS, 'pets-open-phone.png'), fullPage: true });
  const sizes = await phone.page.locator(':is(input, select):visible').evaluateAll((all) => all.map((one) => getComputedStyle(one).fontSize));
  assert.deepEqual(sizes.filter((size) => size !== '16px'), [], 'so that a phone does not zoom');
  await phone.close();
  for (const viewport of [{ width: 683, height: 384 }, { width: 320, height: 640 }]) {
    const zoomed = await at(to, '#6', { look: { viewport } });
    await zoomed.detail.waitFor();
    assert.ok((await wider(zoomed.page)) <= 0, JSON.stringify(viewport));
    await zoomed.close();
  }
  await to.stop();
});

test('a name of invisible characters stops no page', async () => {
  const to = await serve('--ephemeral');
  for (const name of ['\u200b'.repeat(21_500), 'a\u200b'.repeat(10_000), ' ']) await add(to, { name, categoryId: 1 });
  const { page, rows, said, close } = await at(to);
  await rows.nth(2).waitFor();
  assert.deepEqual(await rows.evaluateAll((all) => all.map((row) => row.querySelectorAll('.name bdi *').length)), [1, 100, 1]);
  assert.equal(await rows.nth(2).locator('.name').textContent(), 'no name');
  await page.locator('.name a').first().click();
  await page.locator('.detail summary').click();
  await page.locator('.detail pre').first().waitFor();
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('it is open to all, in every look, with its forms and a pet open', async () => {
  const to = await filled(100);
  for (const [look, options] of Object.entries({ ...LOOKS, forced: { ...LOOKS.light, forcedColors: 'active' } })) {
    const { page, detail, button, said, close } = await at(to, '?limit=100#6', { look: options });
    await detail.waitFor();
    await button('Add a pet').click();
    assert.deepEqual(await barriers(page), [], look);
    assert.ok((await wider(page)) <= 0, look);
    if (look === 'forced') {
      for (const chosen of ['.filters [aria-current]', '.name [aria-expanded=true]']) {
        assert.equal(await page.locator(chosen).evaluate((part) => getComputedStyle(part).outlineStyle), 'solid');
      }
    }
    await page.screenshot({ path: join(SHOTS, `pets-100-${look}.png`) });
    assert.deepEqual(said, [], look);
    await close();
  }
  await to.stop();
});

test('all of it can be done with the keyboard', async () => {
  const to = await filled(2);
  const { page, rows, detail, field, button, link, state, said, close } = await at(to);
  await rows.first().waitFor();
  const walkTo = async (locator, what) => {
    for (let step = 0; step < 60; step += 1) {
      if (await isFocused(locator)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`the Tab key leads to ${what}`);
  };
  await walkTo(button('Add a pet'), 'the button that adds');
  await page.keyboard.press('Enter');
  assert.ok(await isFocused(field('Name')));
  await page.keyboard.type('Max');
  await page.keyboard.press('Tab');
  await page.keyboard.type('3');
  await page.keyboard.press('Enter');
  await assertText(state, 'Added: pet 3, Max.');
  await walkTo(link('Rex'), 'the first pet');
  await page.keyboard.press('Enter');
  await detail.waitFor();
  assert.equal(await link('Rex').getAttribute('aria-expanded'), 'true');
  assert.deepEqual(said, []);
  await close();
  await to.stop();
});

test('without JavaScript there is a sentence, and a curl line that lists the pets', async () => {
  const to = await filled(1);
  const { page, close } = await open(browser, { ...LOOKS.phone, javaScriptEnabled: false });
  await page.goto(`${to.url}/pets`);
  await page.locator('noscript p', { hasText: 'This page needs JavaScript to show the pets.' }).waitFor();
  assert.equal(await page.locator('main :is(input, button):visible').count(), 0);
  const { stdout } = await promisify(execFile)('sh', ['-c', await page.locator('main pre').textContent()], { env: { ...process.env, KEY } });
  assert.equal(JSON.parse(stdout)[0].name, 'Rex');
  await close();
  await to.stop();
});

test('the page loads at most 100 kB, and after the reference 52 KiB', async () => {
  const bytesOf = async (...before) => {
    const { page, close } = await open(browser);
    for (const path of before) await page.goto(service.url + path, { waitUntil: 'networkidle' });
    const bodies = [];
    page.on('response', (response) => bodies.push(response));
    await page.goto(`${service.url}/pets`, { waitUntil: 'networkidle' });
    const loaded = await Promise.all(bodies.filter((response) => !response.url().includes('/v1/')).map((response) => response.request().sizes()));
    await close();
    return loaded.reduce((all, { responseBodySize, responseHeadersSize }) => all + responseBodySize + responseHeadersSize, 0);
  };
  const [cold, warm] = [await bytesOf(), await bytesOf('/')];
  assert.ok(cold > 20_000 && cold <= 100_000, `${cold} bytes`);
  assert.ok(warm > 5_000 && warm < cold && warm <= 52 * 1_024, `${warm} bytes`);
});

test('in the reference, a list is a table or JSON, and a row leads to its pet', async () => {
  const to = await filled(25);
  const { page, said, close } = await open(browser, { viewport: { width: 1366, height: 700 } });
  await page.goto(`${to.url}/#listPets`);
  await page.getByLabel('API key', { exact: true }).fill(KEY);
  const { block, send, body, status } = panel(page, 'listPets');
  const button = (name) => block.getByRole('button', { name, exact: true });
  const rows = block.locator('.pets tbody tr');
  await send.click();
  await assertText(status, '200 OK');
  assert.ok(await body.isVisible());
  assert.equal(await rows.count(), 0);
  await button('Table').click();
  await rows.nth(19).waitFor();
  assert.equal(await body.isVisible(), false);
  assert.equal(await button('Table').getAttribute('aria-pressed'), 'true');
  assert.deepEqual(await barriers(page), []);
  assert.ok((await wider(page)) <= 0);
  await button('Next page').click();
  await rows.locator('.number').filter({ hasText: /^25$/ }).waitFor();
  await button('JSON').click();
  assert.ok(await body.isVisible());
  await button('Table').click();
  await rows.first().getByRole('link').click();
  await page.waitForURL(/\/pets(\?after=20)?#21$/);
  await page.locator('tr[data-id="21"] + .detail').waitFor();
  assert.deepEqual(said, []);
  await page.goto(to.url);
  await page.locator('.ways').getByRole('link', { name: 'Pets' }).click();
  await page.locator('.pets').waitFor();
  await close();
  await to.stop();
});
