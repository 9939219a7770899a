// The project site in a real browser: every page in every look, and the reference as a person uses it.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertText, barriers, KEY, launch, LOOKS, open, pages, panel, serve, SHOTS } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve(), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

// Cut text: cells that their text leaves, tables that must be scrolled, and code in two lines.
function cuts() {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const wide = all('.table, .table th, .table td').filter((part) => part.scrollWidth > part.clientWidth + 1);
  const broken = all('.doc :not(pre) > code, .whole').filter((code) => code.getClientRects().length > 1);
  return [...wide, ...broken].map((part) => part.textContent.slice(0, 60));
}

async function openReference(look) {
  const tab = await open(browser, look);
  await tab.page.goto(service.url);
  await tab.page.locator('.operation').first().waitFor();
  return tab;
}

for (const [look, options] of Object.entries(LOOKS)) {
  test(`every page is whole, silent and open to all: ${look}`, async () => {
    const paths = await pages(service);
    assert.ok(paths.length >= 9, `${paths}`);
    for (const path of paths) {
      const { page, said, asked, close } = await open(browser, options);
      await page.goto(service.url + path);
      assert.equal(await page.locator('h1').count(), 1, path);
      const current = page.locator(path === '/pets' ? '.top .guide' : '.side [aria-current=page]');
      assert.equal(await current.getAttribute('href'), path === '/pets' ? '/' : path);
      assert.deepEqual(await barriers(page), [], path);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, `${path} is ${width} px wider than the window`);
      assert.deepEqual(await page.evaluate(cuts), [], path);
      assert.deepEqual(said, [], path);
      assert.deepEqual(asked.filter((url) => !url.startsWith(`${service.url}/`) && !url.startsWith('data:')), [], path);
      await close();
    }
  });

  test(`every operation is open to all: ${look}`, async () => {
    const { page, said, close } = await openReference(options);
    await page.getByLabel('API key', { exact: true }).fill(KEY);
    for (const summary of await page.locator('.operation > summary').all()) await summary.click();
    await panel(page, 'listPets').send.click();
    await panel(page, 'listPets').status.waitFor();
    await panel(page, 'createPet').send.click();
    await panel(page, 'createPet').status.waitFor();
    const regions = await page.getByRole('region', { name: 'Response' }).evaluateAll((all) => all.map((one) => one.ariaLabel));
    assert.deepEqual(regions.sort(), ['Response: Add a pet', 'Response: List pets']);
    await page.locator('.operation[open] .contract').nth(3).waitFor();
    assert.deepEqual(await barriers(page), []);
    assert.deepEqual(said, []);
    await page.screenshot({ path: join(SHOTS, `operations-${look}.png`), fullPage: true });
    await close();
  });
}

test('marks are shown, and what cannot be tried has no panel', async () => {
  const { page, close } = await openReference();
  const [orders, one, list] = ['listOrders', 'getPet', 'listPets'].map((id) => panel(page, id));
  await assertText(orders.block.locator('.mark'), 'experimental');
  await assertText(one.block.locator('.mark'), 'deprecated');
  assert.equal(await list.block.locator('.mark').count(), 0);
  for (const { summary } of [orders, one, list]) await summary.click();
  await list.send.waitFor();
  await one.send.waitFor();
  assert.equal(await orders.block.locator('form, button').count(), 0);
  await close();
});

test('an operation has an address', async () => {
  const { page, said, close } = await openReference();
  for (const id of ['createPet', 'listOrders']) {
    await page.goto('about:blank');
    await page.goto(`${service.url}/#${id}`);
    await page.locator(`#${id}[open]`).waitFor();
    assert.equal(await page.locator('.operation[open]').count(), 1);
  }
  const list = panel(page, 'listPets');
  await list.summary.click();
  await page.waitForURL(`${service.url}/#listPets`);
  await page.evaluate(() => (location.hash = '#getPet'));
  await page.locator('#getPet[open]').waitFor();
  await panel(page, 'getPet').summary.click();
  await page.waitForURL(`${service.url}/`);
  assert.deepEqual(said, []);
  await close();
});

test('an opened operation fits a few screens', async () => {
  for (const [id, most, width] of [['listPets', 3_000, 1440], ['createPet', 3_500, 390]]) {
    const { page, close } = await open(browser, { viewport: { width, height: 900 } });
    await page.goto(`${service.url}/#${id}`);
    await page.locator(`#${id}[open] .samples.chosen`).waitFor();
    const height = await page.locator(`#${id}`).evaluate((element) => element.offsetHeight);
    assert.ok(height <= most, `${id} is ${height} px tall`);
    await close();
  }
});

test('all of it can be done with the keyboard', async () => {
  const { page, said, close } = await openReference();
  const list = panel(page, 'listPets');
  const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);
  const walkTo = async (locator, what) => {
    for (let step = 0; step < 60; step += 1) {
      if ((await locator.count()) && (await isFocused(locator))) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`the Tab key leads to ${what}`);
  };
  await page.keyboard.press('Tab');
  assert.ok(await isFocused(page.getByText('Skip to content')));
  await walkTo(page.getByLabel('API key', { exact: true }), 'the field for the key');
  await page.keyboard.type(KEY);
  await page.keyboard.press('Enter');
  await walkTo(list.summary, 'the first operation');
  await page.keyboard.press('Enter');
  await walkTo(list.send, 'Send');
  await page.keyboard.press('Enter');
  await assertText(list.status, '200');
  assert.deepEqual(said, []);
  await close();
});

test('a browser gets a page for what is not there, whole and open to all', async () => {
  for (const options of Object.values(LOOKS)) {
    const { page, said, close } = await open(browser, options);
    const reply = await page.goto(`${service.url}/docs/nowhere`);
    assert.equal(reply.status(), 404);
    assert.deepEqual(await barriers(page), []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `${width} px wider than the window`);
    await page.getByRole('link', { name: 'quickstart', exact: true }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/docs/quickstart');
    // Chromium itself reports every response from 400 on.
    assert.deepEqual(said.filter((line) => !line.includes('status of 404')), []);
    await close();
  }
});

test('light or dark is as the system has it, until a reader chooses, and is remembered', async () => {
  const { page, said, close } = await open(browser, LOOKS.dark);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [light, dark] = ['rgb(255, 255, 255)', 'rgb(20, 25, 26)'];
  const kept = () => page.evaluate(() => localStorage.getItem('theme'));
  await page.goto(`${service.url}/docs/keys`);
  assert.equal(await ground(), dark);
  await page.emulateMedia({ colorScheme: 'light' });
  assert.equal(await ground(), light);
  await page.getByRole('button', { name: 'Dark colours' }).click();
  assert.deepEqual([await ground(), await kept()], [dark, 'dark']);
  // Before anything is drawn: the script stands in the head and is not deferred.
  await page.goto(`${service.url}/docs/errors`, { waitUntil: 'commit' });
  await page.waitForFunction(() => document.body);
  assert.equal(await ground(), dark);
  await page.waitForLoadState();
  assert.deepEqual(await barriers(page), []);
  // The choice of what the system has is no choice: the page follows the system again.
  await page.getByRole('button', { name: 'Light colours' }).press('Enter');
  assert.deepEqual([await ground(), await kept()], [light, null]);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.equal(await ground(), dark);
  assert.deepEqual(said, []);
  await close();
});

test('without JavaScript there is something to read', async () => {
  const { page, close } = await open(browser, { ...LOOKS.light, javaScriptEnabled: false });
  await page.goto(service.url);
  await page.locator('h1', { hasText: 'Pet store inventory' }).waitFor();
  await page.locator('summary', { hasText: '/v1/store/orders' }).waitFor();
  await page.locator('#createPet > summary').click();
  await page.locator('#createPet-errors > summary').click();
  await page.getByText('invalid_idempotency_key').waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Errors', exact: true }).click();
  await page.getByText('outcome_unknown').first().waitFor();
  await close();
});

test('what is linked to is there, and in view', async () => {
  const { page, said, close } = await open(browser);
  for (const place of ['errors#invalid_json', 'configuration#listen', 'limits#timeout-idle', 'keys#the-first-key']) {
    await page.goto(`${service.url}/docs/${place}`);
    const target = page.locator(':target');
    assert.equal(`#${await target.getAttribute('id')}`, place.slice(place.indexOf('#')));
    assert.ok(await inView(target), place);
    await target.locator('a.anchor').click();
    assert.equal(page.url(), `${service.url}/docs/${place}`);
  }
  assert.deepEqual(said, []);
  await close();
});

test('all error codes are one compact table, and each can be linked to', async () => {
  const { page, close } = await open(browser, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${service.url}/docs/errors`);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 3_050, `${height} px`);
  const { components } = await (await fetch(`${service.url}/openapi.json`)).json();
  const codes = components.schemas.Error.properties.code.examples;
  const rows = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [row.id, parseInt(row.innerText.split('\n')[1])]));
  assert.deepEqual(rows.map(([id]) => id), codes);
  assert.deepEqual(rows, rows.toSorted(([, one], [, next]) => one - next), 'they are in the order of their statuses');
  await close();
});

test('a deprecated operation says what to call instead, and leads to how', async () => {
  const { page, close } = await openReference();
  const one = panel(page, 'getPet');
  await one.summary.click();
  const notice = one.block.locator('.deprecation');
  assert.match(await notice.textContent(), /The replacement is GET \/v1\/pets with the status filter\. To get one pet, such as pet 7, call GET \/v1\/pets\?after=6&limit=1 and check its id\./);
  await notice.getByRole('link', { name: 'How to migrate' }).click();
  assert.ok(await inView(page.locator(':target')));
  for (const name of ['one', 'two']) {
    const body = JSON.stringify({ name, categoryId: 1 });
    const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
    const { id } = await (await fetch(`${service.url}/v1/pets`, { method: 'POST', headers, body })).json();
    const found = await (await fetch(`${service.url}/v1/pets?after=${id - 1}&limit=1`, { headers })).json();
    assert.deepEqual(found.map((pet) => pet.id), [id]);
  }
  await close();
});

test('on a phone, a table of two columns repeats no heading', async () => {
  const { page, close } = await open(browser, LOOKS.phone);
  await page.goto(`${service.url}/docs/errors`);
  const labels = await page.locator('tbody td').evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content));
  assert.ok(labels.length > 50 && labels.every((content) => content === 'none'), `${new Set(labels)}`);
  await page.goto(`${service.url}/docs/limits`);
  assert.match(await page.locator('tbody td').nth(1).evaluate((cell) => getComputedStyle(cell, '::before').content), /Maximum/);
  await close();
});

test('pictures can be read on a phone, in the dark and in forced colours', async () => {
  for (const look of [LOOKS.phone, LOOKS.dark, { ...LOOKS.phone, forcedColors: 'active', colorScheme: 'dark' }]) {
    const { page, said, close } = await open(browser, look);
    for (const path of ['retries', 'domains', 'backups', 'machines', 'install', 'first-evening']) {
      await page.goto(`${service.url}/docs/${path}`);
      const picture = page.getByRole('img', { name: /[a-z]/ }).and(page.locator('.picture svg'));
      const { width, height, x } = await picture.boundingBox();
      assert.ok(x >= 0 && x + width <= look.viewport.width && height < 300, path);
      // Text is not scaled, stays in the picture and crosses no other text.
      const boxes = await picture.locator('text').evaluateAll((texts) => texts.map((text) => text.getBoundingClientRect().toJSON()));
      const frame = await picture.evaluate((svg) => svg.getBoundingClientRect().toJSON());
      for (const [i, box] of boxes.entries()) {
        assert.ok(box.height >= 12 && box.left >= frame.left && box.right <= frame.right, `${path}: text ${i}`);
        const crosses = (other) => box.left < other.right && other.left < box.right && box.top < other.bottom - 2 && other.top < box.bottom - 2;
        assert.ok(!boxes.slice(i + 1).some(crosses), `${path}: text ${i} crosses another`);
      }
      const colours = await picture.evaluate((svg) => [getComputedStyle(svg).stroke, getComputedStyle(svg.querySelector('text')).fill]);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.ok(!colours.includes(ground) && !colours.includes('none'), `${path}: ${colours} on ${ground}`);
    }
    assert.deepEqual(said, []);
    await close();
  }
});

test('contents stand at the side, and pages lead to each other', async () => {
  const { page, close } = await open(browser);
  await page.goto(`${service.url}/docs/configuration`);
  const [contents, text] = await Promise.all(['.contents', 'article'].map((part) => page.locator(part).boundingBox()));
  assert.ok(contents.x >= text.x + text.width && contents.y < 400, JSON.stringify({ contents, text }));
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'The public URL' }).click();
  assert.ok(page.url().endsWith('/docs/configuration#the-public-url'));
  assert.ok(await inView(page.locator('.contents')));
  const paths = (await pages(service)).filter((path) => path !== '/pets');
  await page.goto(service.url + paths[0]);
  for (const path of paths.slice(1)) {
    await page.locator('.turn [rel=next]').click();
    await page.waitForURL(service.url + path);
  }
  assert.equal(await page.locator('.turn [rel=next]').count(), 0);
  await page.locator('.turn [rel=prev]').click();
  await page.waitForURL(service.url + paths.at(-2));
  await close();
});

test('on a phone the bar is a menu that names the page, with or without JavaScript', async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { page, close } = await open(browser, { ...LOOKS.phone, javaScriptEnabled });
    await page.goto(`${service.url}/docs/limits`);
    const [menu, bar] = [page.locator('.menu summary'), page.getByRole('navigation', { name: 'Pages' })];
    assert.match(await menu.textContent(), /Reference: Limits/);
    assert.ok(await inView(menu));
    assert.equal(await bar.isVisible(), false);
    await menu.click();
    assert.ok(await inView(bar.locator('[aria-current=page]')));
    await bar.getByRole('link', { name: 'Domains' }).click();
    await page.waitForURL(`${service.url}/docs/domains`);
    assert.equal(await page.locator('#search-open').isVisible(), javaScriptEnabled);
    await close();
  }
});

test('the search finds pages, headings, codes, settings and operations, with the keyboard', async () => {
  const { page, said, close } = await open(browser);
  await page.goto(`${service.url}/docs/retries`);
  const field = page.getByRole('combobox', { name: 'Search' });
  const options = page.getByRole('option');
  const search = async (words) => {
    await page.keyboard.press('/');
    await field.fill(words);
    await options.first().waitFor();
  };
  await search('errors');
  assert.deepEqual(await barriers(page), []);
  await page.screenshot({ path: join(SHOTS, 'search.png') });
  assert.equal(await field.getAttribute('aria-activedescendant'), 'search-0');
  await page.keyboard.press('ArrowDown');
  assert.equal(await options.nth(1).getAttribute('aria-selected'), 'true');
  assert.equal(await field.getAttribute('aria-activedescendant'), 'search-1');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  assert.equal(await options.last().getAttribute('aria-selected'), 'true');
  await field.fill('xyzzy');
  await page.getByRole('status').filter({ hasText: "The guide has nothing for 'xyzzy'." }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await field.isVisible(), false);
  for (const [words, path] of [
    ['invalid_json', '/docs/errors#invalid_json'],
    ['petstore_listen', '/docs/configuration#listen'],
    ['rotating a key', '/docs/keys#rotating-a-key'],
    ['request body', '/docs/limits#request-body'],
    ['Custom domains', '/docs/domains'],
    ['createPet', '/#createPet'],
  ]) {
    await search(words);
    await page.keyboard.press('Enter');
    await page.waitForURL(service.url + path);
    assert.equal(await field.isVisible(), false, words);
  }
  // In a field, the key is a letter.
  await page.getByLabel('API key', { exact: true }).press('/');
  assert.equal(await field.isVisible(), false);
  assert.deepEqual(said, []);
  await close();
});

test('no page takes more than 61 KB with the index of the search, the reference 75 KB, and the page of pets 100 KB', async () => {
  for (const path of await pages(service)) {
    const { page, close } = await open(browser);
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    let bytes = 0;
    session.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(service.url + path, { waitUntil: 'networkidle' });
    // On the page of pets, the key is that of its own search.
    if (path !== '/pets') {
      const parts = ['search.json', 'search-rank.js'].map((part) => page.waitForResponse(`**/${part}`));
      await page.keyboard.press('/');
      for (const part of await Promise.all(parts)) await part.finished();
    }
    const most = { '/': 75_000, '/pets': 100_000 }[path] ?? 61_000;
    assert.ok(bytes > 1_000 && bytes <= most, `${path}: ${bytes} bytes`);
    await close();
  }
});

test('the reference takes at most 60 KB, and next time hardly any', async () => {
  const { page, close } = await open(browser);
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto(service.url, { waitUntil: 'networkidle' });
  assert.ok(bytes > 10_000 && bytes <= 60_000, `${bytes} bytes`);
  bytes = 0;
  const [asked, kept] = [[], new Set()];
  session.on('Network.requestServedFromCache', ({ requestId }) => kept.add(requestId));
  session.on('Network.responseReceived', ({ requestId, response }) => {
    if (!response.fromDiskCache && !kept.has(requestId)) asked.push(response.url);
  });
  await page.goto(`${service.url}/docs/errors`, { waitUntil: 'networkidle' });
  await page.goto(service.url, { waitUntil: 'networkidle' });
  assert.deepEqual(asked, [`${service.url}/docs/errors`, `${service.url}/`]);
  assert.ok(bytes < 20_000, `${bytes} bytes the second time`);
  await close();
});

test('scripts of an allowed origin may read responses, others may not', async () => {
  const elsewhere = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<title>a</title>'));
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const origin = `http://127.0.0.1:${elsewhere.address().port}`;
  const open_to = await serve('--allow-origin', origin);
  const { page, close } = await open(browser);
  await page.goto(origin);
  const create = (url) =>
    page.evaluate(
      async ([url, key]) => {
        const reply = await fetch(`${url}/v1/pets`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
          body: '{"name":"Rex","categoryId":1}',
        });
        return [reply.status, reply.headers.get('Location')];
      },
      [url, KEY],
    );
  assert.deepEqual(await create(open_to.url), [201, '/v1/pets/1']);
  await assert.rejects(create(service.url), /Failed to fetch/);
  await close();
  elsewhere.close();
  await open_to.stop();
});

// True if some of it can be seen without scrolling.
function inView(locator) {
  return locator.evaluate(async (element) => {
    const isIn = () => {
      const { top, bottom, height } = element.getBoundingClientRect();
      return height > 0 && bottom > 0 && top < innerHeight;
    };
    // The browser scrolls to what an address names in a later frame.
    for (let frames = 0; frames < 100 && !isIn(); frames += 1) await new Promise(requestAnimationFrame);
    return isIn();
  });
}
