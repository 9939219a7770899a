// Where things stand on the pages: measured in a browser, in the sizes that people have.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { launch, LOOKS, open, pages, serve, SHOTS } from './harness.mjs';

let service;
let browser;
before(async () => {
  [service, browser] = await Promise.all([serve('--admin', '0'), launch()]);
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

const LAPTOP = { viewport: { width: 1366, height: 700 } };
const NARROW = { viewport: { width: 320, height: 640 } };
const OPERATIONS = ['listPets', 'createPet', 'getPet'];
const DEEP = ['/#createPet', '/#createPet-errors', '/#getPet-try-it', '/#listPets', '/docs/errors#overloaded', '/docs/configuration#listen'];

const box = (locator) => locator.boundingBox();

// A page at a path. `prepare` runs in it before anything else does.
async function visit(look, path, prepare) {
  const tab = await open(browser, look);
  if (prepare) await tab.page.addInitScript(prepare);
  await tab.page.goto(service.url + path, prepare && { waitUntil: 'networkidle' });
  await scrolled(tab.page);
  return tab;
}

// Waits for the frame in which the browser scrolls to what the address names.
const scrolled = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));

test('nothing moves while a page loads, whatever its address names', async () => {
  const watch = () => {
    localStorage.setItem('language', 'Python');
    globalThis.moved = [];
    new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) {
        globalThis.moved.push([value, sources.map(({ node }) => node?.parentElement?.className)]);
      }
    }).observe({ type: 'layout-shift', buffered: true });
  };
  const all = await pages(service);
  for (const [half, look] of [LAPTOP, LOOKS.phone].entries()) {
    // The pages of the guide are made alike: half of them on a laptop, and half on a phone.
    for (const path of [...all.filter((_, i) => i % 2 === half), ...DEEP]) {
      const { page, close } = await visit(look, path, watch);
      const moved = await page.evaluate(() => globalThis.moved);
      const sum = moved.reduce((all, [value]) => all + value, 0);
      assert.ok(sum <= 0.02, `${path} at ${look.viewport.width}: ${sum} ${JSON.stringify(moved)}`);
      await close();
    }
  }
});

test('nothing moves when the rest of a page comes after its first paint', async (t) => {
  let isPainted;
  const painted = new Promise((resolve) => (isPainted = resolve));
  const slow = createServer(async ({ url, headers }, response) => {
    const page = await fetch(service.url + url, { headers: { accept: headers.accept } });
    const text = Buffer.from(await page.arrayBuffer());
    response.setHeader('Content-Type', page.headers.get('content-type'));
    const half = url === PATH ? text.indexOf('<h1') : 0;
    if (half) {
      response.write(text.subarray(0, half));
      await painted;
    }
    response.end(text.subarray(half));
  });
  const PATH = '/docs/read-only';
  // Also if the test fails.
  t.after(() => {
    slow.close();
    slow.closeAllConnections();
  });
  await new Promise((resolve) => slow.listen(0, '127.0.0.1', resolve));
  const { page, close } = await open(browser, LOOKS.phone);
  await page.exposeFunction('isPainted', isPainted);
  await page.addInitScript(() => {
    globalThis.moved = [];
    new PerformanceObserver(() => globalThis.isPainted()).observe({ type: 'paint', buffered: true });
    new PerformanceObserver((list) => globalThis.moved.push(...list.getEntries().map(({ value }) => value))).observe({
      type: 'layout-shift',
      buffered: true,
    });
  });
  await page.goto(`http://127.0.0.1:${slow.address().port}${PATH}`, { waitUntil: 'networkidle' });
  const moved = await page.evaluate(() => globalThis.moved);
  const sum = moved.reduce((all, value) => all + value, 0);
  assert.ok(sum <= 0.02, `${moved}`);
  await close();
});

test('pages have five sizes of type, and the first one a sixth', async () => {
  const sizes = () => {
    for (const details of document.querySelectorAll('details')) details.open = true;
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = {};
    while (words.nextNode()) {
      const { textContent, parentElement } = words.currentNode;
      if (textContent.trim()) found[getComputedStyle(parentElement).fontSize] = `<${parentElement.localName}> ${textContent}`;
    }
    // The word of a button that is drawn as a picture.
    delete found['0px'];
    return found;
  };
  for (const path of await pages(service)) {
    const { page, close } = await visit(LAPTOP, path);
    const allowed = ['13px', '14px', '16px', '20px', '28px', ...(path === '/' ? ['36px'] : [])];
    const others = Object.entries(await page.evaluate(sizes)).filter(([size]) => !allowed.includes(size));
    assert.deepEqual(others, [], path);
    await close();
  }
});

test('fields have 16 px, so that a phone does not zoom', async () => {
  const { page, close } = await visit(LOOKS.phone, '/');
  const fields = page.locator('input, select, textarea');
  const sizes = await fields.evaluateAll((all) => all.map((field) => [field.id, getComputedStyle(field).fontSize]));
  assert.ok(sizes.length > 5, `${sizes}`);
  assert.deepEqual(sizes.filter(([, size]) => size !== '16px'), []);
  await close();
});

test('what sends a request is in view once an operation is open', async () => {
  for (const look of [LAPTOP, LOOKS.phone]) {
    const { height } = look.viewport;
    for (const id of OPERATIONS) {
      for (const way of ['a link', 'a click']) {
        const { page, close } = await visit(look, way === 'a link' ? `/#${id}` : '/');
        if (way === 'a click') {
          await page.locator(`#${id} > summary`).click();
          await page.waitForURL(`**/#${id}`);
          await scrolled(page);
        }
        const send = await box(page.locator(`#${id} .send button`));
        const what = `${id} by ${way} at ${look.viewport.width}: ${JSON.stringify(send)}`;
        assert.ok(send.y > 52 && send.y + send.height <= height, what);
        await close();
      }
    }
  }
});

test('the form, the sample and the response stay in view at any height', async () => {
  for (const viewport of [LAPTOP.viewport, { width: 1024, height: 500 }, { width: 1440, height: 900 }]) {
    const { page, close } = await visit({ viewport }, '/#listPets');
    const trial = page.locator('#listPets .trial');
    await page.evaluate(() => scrollBy({ top: 150, behavior: 'instant' }));
    const { y, height } = await box(trial);
    assert.ok(y >= 52 && y + height <= viewport.height, JSON.stringify({ viewport, y, height }));
    await trial.locator('pre').last().scrollIntoViewIfNeeded();
    const last = await box(trial.locator('pre').last());
    assert.ok(last.y + last.height <= viewport.height, JSON.stringify({ viewport, last }));
    await close();
  }
});

test('the header and the side bar stand still, on pages of the guide', async () => {
  const stands = new Set();
  // They are the same on all pages.
  for (const path of (await pages(service)).filter((path, i) => path !== '/pets' && i % 3 === 0)) {
    const { page, close } = await visit(LAPTOP, path);
    const places = () =>
      page.evaluate(() =>
        [...document.querySelectorAll('.top > *, .side a')].map((part) => {
          const { x, y, width } = part.getBoundingClientRect();
          return [part.textContent, x, y + (part.closest('.side')?.scrollTop ?? 0), width];
        }),
      );
    const [header, side] = await Promise.all(['.top', '.side'].map((part) => box(page.locator(part))));
    assert.ok(header.y === 0 && header.height <= 56, JSON.stringify(header));
    assert.deepEqual([side.x, side.width], [0, 240], path);
    const before = await places();
    await page.evaluate(() => scrollTo({ top: document.body.scrollHeight, behavior: 'instant' }));
    const moved = (await places()).filter(([, ...place], i) => place.some((number, n) => Math.abs(number - before[i][n + 1]) >= 1));
    assert.deepEqual(moved, [], path);
    // The summary of the menu, which is not shown, names the page.
    stands.add(before.filter(([text]) => !text.startsWith('Menu ')).join('\n'));
    await close();
  }
  assert.equal(stands.size, 1, [...stands].join('\n\n'));
});

test('a side bar that was scrolled stays so on the next page, and shows where one is', async () => {
  const { page, close } = await visit({ viewport: { width: 1366, height: 360 } }, '/docs');
  const side = page.locator('.side');
  const next = await side.evaluate((part) => {
    part.scrollTop = 120;
    const links = [...part.querySelectorAll(':scope > ul > li > a')];
    const link = links.find((one) => one.getBoundingClientRect().top > 150);
    link.click();
    return link.href;
  });
  await page.waitForURL(next);
  assert.equal(await side.evaluate((part) => part.scrollTop), 120);
  await page.goto(`${service.url}/docs/domains`);
  const entry = await box(side.locator('[aria-current=page]'));
  assert.ok(entry.y > 52 && entry.y + entry.height <= 360, JSON.stringify(entry));
  await close();
});

test('the section in view is marked in the contents, and the operation in the side bar', async () => {
  const { page, close } = await visit(LAPTOP, '/docs/keys');
  const marked = page.locator('.contents [aria-current]');
  for (const name of ['Rotating a key', 'Creating keys', 'Keeping a key safe']) {
    const heading = page.getByRole('heading', { name });
    await heading.evaluate((part) => part.scrollIntoView({ behavior: 'instant' }));
    await page.locator('.contents [aria-current]', { hasText: name }).waitFor();
    assert.equal(await marked.count(), 1);
  }
  await page.goto(`${service.url}/#createPet`);
  await page.locator('.side [aria-current=true]', { hasText: 'Add a pet' }).waitFor();
  assert.equal(await page.locator('.side [aria-current=true]').count(), 1);
  await close();
});

test('pages have contents beside them if they have headings', async () => {
  for (const path of (await pages(service)).filter((path) => path !== '/')) {
    const { page, close } = await visit(LAPTOP, path);
    const headings = await page.locator('article :is(h2, h3)').count();
    assert.equal(await page.locator('.contents').isVisible(), headings > 0, path);
    await close();
  }
});

test('a menu takes the place of the side bar under 1024 px, and closes by itself', async () => {
  for (const look of [LOOKS.phone, LOOKS.dark]) {
    const { page, close } = await visit(look, '/');
    const [menu, side] = [page.locator('.menu summary'), page.locator('.side')];
    assert.ok((await box(page.locator('.top'))).height <= 56);
    await page.evaluate(() => scrollTo({ top: 300, behavior: 'instant' }));
    await menu.click();
    assert.equal((await box(side)).y, 52);
    await page.keyboard.press('Escape');
    await side.waitFor({ state: 'hidden' });
    await menu.click();
    await side.getByRole('link', { name: 'Add a pet' }).click();
    await page.locator('#createPet[open]').waitFor();
    await side.waitFor({ state: 'hidden' });
    await close();
  }
});

test('errors are folded, and a link to them opens them', async () => {
  const { page, close } = await visit(LAPTOP, '/#createPet');
  const errors = page.locator('#createPet-errors');
  assert.equal(await errors.getAttribute('open'), null);
  assert.match(await errors.locator('summary').textContent(), /^\d+ errors$/);
  await page.goto('about:blank');
  await page.goto(`${service.url}/#createPet-errors`);
  await page.locator('#createPet[open] #createPet-errors[open]').waitFor();
  await scrolled(page);
  const { y } = await box(errors);
  assert.ok(y >= 52 && y < 700, `${y}`);
  await page.locator('#createPet-errors a', { hasText: 'invalid_json' }).click();
  await page.waitForURL('**/docs/errors#invalid_json');
  await page.goBack();
  await page.locator('#createPet[open] #createPet-errors[open]').waitFor();
  await close();
});

test('nothing is wider than the narrowest phone', async () => {
  for (const path of [...(await pages(service)), '/docs/nowhere']) {
    const { page, close } = await visit(NARROW, path);
    await page.evaluate(() => document.querySelectorAll('details.operation').forEach((part) => (part.open = true)));
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, `${path} is ${wider} px wider`);
    await close();
  }
});

test('on paper there is all of the text, and nothing to press', async () => {
  const { page, close } = await open(browser, { viewport: { width: 794, height: 1123 } });
  await page.emulateMedia({ media: 'print' });
  for (const path of await pages(service)) {
    await page.goto(service.url + path);
    const cut = () => [...document.querySelectorAll('pre, .table')].filter((part) => part.scrollWidth > part.clientWidth).length;
    assert.equal(await page.evaluate(cut), 0, path);
    assert.equal(await page.locator(':is(button, input, textarea, .side, .contents, .turn):visible').count(), 0, path);
  }
  await page.goto(service.url);
  for (const part of ['#createPet-request-body', '#createPet-errors dl', '#listOrders .contract', '#getPet .samples pre']) {
    const { height } = await box(page.locator(part).first());
    assert.ok(height > 10, `${part}: ${height}`);
  }
  await close();
});

test('the first page says what the service is and leads on', async () => {
  const own = await serve('--title', 'Tim & <Jo>', '--description', 'Two cats.', '--admin', '18477');
  const { page, close } = await open(browser);
  for (const [url, title, text] of [
    [service.url, 'Pet store inventory', 'is on disk'],
    [own.url, 'Tim & <Jo>', 'Two cats.'],
  ]) {
    await page.goto(url);
    assert.equal(await page.title(), title);
    assert.equal(await page.locator('h1').textContent(), title);
    assert.equal(await page.locator('.home').textContent(), title);
    assert.equal(await page.locator('meta[property="og:site_name"]').getAttribute('content'), title);
    assert.ok((await page.locator('.lead').textContent()).includes(text));
    assert.equal(await page.locator('.ways').getByRole('link', { name: 'Quickstart' }).count(), 1);
  }
  // The picture of the README.
  await page.setViewportSize({ width: 1280, height: 1000 });
  await page.goto(service.url);
  await page.locator('#createPet > summary').click();
  await page.evaluate(() => scrollTo({ top: 0, behavior: 'instant' }));
  await page.screenshot({ path: join(SHOTS, 'reference.png') });
  await page.goto(own.url);
  assert.equal(await page.locator('.ways').getByRole('link', { name: 'Settings' }).getAttribute('href'), `${own.admin}/settings/domains`);
  await close();
  await own.stop();
});

test('in forced colours, the current page, the current section and the chosen result can be told from the others', async () => {
  const { page, close } = await open(browser, { ...LOOKS.light, forcedColors: 'active' });
  const look = (selector, property) => page.locator(selector).first().evaluate((part, name) => getComputedStyle(part)[name], property);
  await page.goto(`${service.url}/docs/configuration#the-public-url`);
  await page.locator('.contents [aria-current]').waitFor();
  for (const bar of ['.side', '.contents']) {
    const [current, other] = [`${bar} a[aria-current]`, `${bar} a:not([aria-current])`];
    assert.notEqual(await look(current, 'borderLeftColor'), await look(other, 'borderLeftColor'), bar);
    assert.equal(await look(other, 'borderLeftColor'), await look('body', 'backgroundColor'), bar);
  }
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: 'Search' }).fill('pet');
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('ArrowDown');
  assert.equal(await look('[role=option][aria-selected=true]', 'outlineStyle'), 'solid');
  assert.equal(await look('[role=option]:not([aria-selected=true])', 'outlineStyle'), 'none');
  await close();
});

test('samples are wrapped, so that nothing is cut', async () => {
  for (const options of [{ viewport: { width: 1366, height: 768 } }, { viewport: { width: 1024, height: 768 } }, LOOKS.phone]) {
    const { page, close } = await open(browser, options);
    await page.goto(`${service.url}/#createPet`);
    await page.locator('#createPet[open] .samples.chosen').waitFor();
    for (const language of ['curl', 'JavaScript', 'Python']) {
      await page.locator('#createPet .languages').getByText(language).click();
      const sample = page.locator(`#createPet figure[data-language=${language}] pre`);
      assert.equal(await sample.evaluate((pre) => pre.scrollWidth - pre.clientWidth), 0, language);
    }
    await close();
  }
});

test('the first page shows a request and its response beside a short lead', async () => {
  const { page, said, close } = await open(browser);
  await page.goto(service.url);
  const lead = page.locator('.lead');
  assert.ok((await lead.textContent()).split(' ').length <= 20);
  const first = page.locator('.first');
  const [request, response] = await first.locator('pre').allTextContents();
  assert.equal(request, `curl '${service.url}/v1/pets' \\\n    -H "Authorization: Bearer $KEY"`);
  assert.ok(response.startsWith('[\n  {\n    "id": 1,'), response);
  assert.equal(await first.locator('.copy').count(), 1);
  const [left, right] = await Promise.all([lead, first].map((part) => part.boundingBox()));
  assert.ok(right.x >= left.x + left.width && right.y + right.height < 450, JSON.stringify({ left, right }));
  await page.getByText('petstore key add me --database FILE').waitFor();
  await page.locator('.ways').getByRole('link', { name: 'OpenAPI', exact: true }).click();
  assert.equal(page.url(), `${service.url}/openapi.json`);
  assert.deepEqual(said, []);
  await close();
});

test('an operation begins with its body, and the fields of a pet are described once', async () => {
  const { page, close } = await open(browser);
  await page.goto(`${service.url}/#createPet`);
  const operation = page.locator('#createPet');
  const headings = await operation.locator('.contract h4').allTextContents();
  assert.deepEqual(headings.slice(0, 3), ['Request body', 'Parameters', 'Response']);
  const height = await operation.evaluate((element) => element.offsetHeight);
  assert.ok(height <= 1_000, `${height} px`);
  await operation.getByRole('link', { name: 'Pet', exact: true }).click();
  await page.locator('#Pet[open]').getByText('in responses only').waitFor();
  assert.equal(await page.locator('dt', { hasText: 'in responses only' }).count(), 1);
  await close();
});
