// Project settings → Domains in a real browser, with a service and a DNS server of its own for each test.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KEY, LOOKS } from './harness.mjs';
import { announced, enter, holdsFocus, HOST, RIGHT, shows, start, unexpected, visit } from './settings.mjs';

test('a key that is wrong or lacks the scope is told why, and a right one is kept nowhere', async (t) => {
  const { page, said, asked, service, key } = await start(t, { isOpen: false });
  const field = page.getByLabel('API key', { exact: true });
  const [problem, help] = [page.locator('#key-problem'), page.locator('#key-help')];
  await enter(page, 'wrong');
  await shows(problem, 'The API key is unknown, expired or revoked.');
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
  await holdsFocus(field);
  // The key of the environment as well.
  for (const other of [await service.run('key', 'add', 'plain'), KEY]) {
    assert.ok(await help.isVisible());
    await enter(page, other);
    await shows(problem, 'petstore key add NAME --admin');
    // The same is not said twice.
    assert.ok(await help.isHidden());
    await enter(page, 'wrong');
    await shows(problem, 'unknown, expired or revoked');
  }
  await enter(page, 'schlüssel');
  await shows(problem, 'letters, digits and punctuation');
  assert.ok(await page.locator('#settings').isHidden());

  for (const given of [`-H "Authorization: Bearer ${key}"`, `curl -H 'Authorization: Bearer ${key}' http://127.0.0.1/`, `export API_KEY='${key}'`, `"${key}"`, `Authorization: Bearer ${key}`]) {
    await enter(page, given);
    await page.locator('#settings').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await field.waitFor();
  }
  await enter(page, ` Bearer ${key} `);
  await page.locator('#settings').waitFor();
  assert.ok(await problem.isHidden());
  const kept = await page.evaluate(() => [
    JSON.stringify([localStorage, sessionStorage, document.cookie]),
    document.body.outerHTML,
  ]);
  assert.ok(kept.every((text) => !text.includes(key)));
  assert.equal(await field.inputValue(), '');
  assert.ok(asked.every((url) => url.startsWith(`${service.admin}/`) && !url.includes(key)), `${asked}`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await field.waitFor();
  assert.ok(await page.locator('#settings').isHidden());
  assert.deepEqual(unexpected(said), []);
});

test('no domain can be added before three numbered conditions hold', async (t) => {
  const { page, service, comeBack } = await start(t, { isReady: false });
  const field = page.getByLabel('Domain', { exact: true });
  const [needs, problem] = [page.locator('#needs'), page.locator('#add-problem')];
  const add = page.getByRole('button', { name: 'Add domain' });
  const said = async () => (await needs.getByRole('listitem').allInnerTexts()).map((text) => text.replace(/\s*Copy command/, '').replace(/\s+/g, ' '));
  const [plan, deploy] = ['Set the plan to pro or enterprise (a setting of this service; nothing is charged)', 'Publish the site'];
  const platform = 'Start the service with the host of the platform ✓ Done';
  assert.deepEqual(await said(), [`${plan}: petstore site plan pro --database FILE`, `${deploy}: petstore site deploy --database FILE`, platform]);
  assert.ok((await field.isDisabled()) && (await add.isDisabled()));

  await service.run('site', 'plan', 'pro');
  await comeBack();
  await shows(page.locator('#plan'), 'pro');
  assert.deepEqual(await said(), [`${plan} ✓ Done`, `${deploy}: petstore site deploy --database FILE`, platform]);
  assert.ok(await field.isDisabled());
  await service.run('site', 'deploy');
  await comeBack();
  await needs.waitFor({ state: 'hidden' });
  await shows(page.locator('#deploy'), '#1,');
  for (const [name, why] of [
    ['', 'Enter a domain name, such as pets.example.com.'],
    ['shop', "isn't a full domain name"],
    ['*.example.com', 'without a wildcard'],
    ['info@example.com', "isn't a domain name"],
    ['192.0.2.7', 'is an IP address'],
    [`x.${HOST}`, 'belongs to the platform'],
  ]) {
    await field.fill(name);
    await field.press('Enter');
    await shows(problem, why);
    await holdsFocus(field);
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    assert.equal(await field.getAttribute('aria-describedby'), await problem.getAttribute('id'));
  }
  // Somebody changes the plan meanwhile, which the page does not find out by itself.
  await page.route('**/settings/api/project', () => {});
  await service.run('site', 'plan', 'free');
  await field.fill('www.example.com');
  await field.press('Enter');
  await shows(problem.locator('code'), 'petstore site plan pro');
});

test('a pasted URL is reduced to its host', async (t) => {
  const { page, card } = await start(t);
  for (const [pasted, name] of [
    ['https://shop.example.com/path?query#part', 'shop.example.com'],
    [' http://user:word@Blog.Example.com.:8443/ ', 'blog.example.com'],
  ]) {
    await page.getByLabel('Domain', { exact: true }).fill(pasted);
    await page.getByRole('button', { name: 'Add domain' }).click();
    await card(name).waitFor();
    assert.equal(await card(name).getByRole('heading').innerText(), name);
  }
});

test('the target shown is the target accepted', async (t) => {
  const { page, dns, card } = await start(t, { domains: ['www.example.com'] });
  const target = await page.locator('#target').innerText();
  assert.equal(await card('www.example.com').locator('td[data-head="Value"] code').innerText(), target);
  dns.records['www.example.com'] = { CNAME: target };
  await card('www.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('www.example.com').locator('.state'), 'verified');
});

test('an added domain shows its record, whose values can be copied', async (t) => {
  const look = { ...LOOKS.light, permissions: ['clipboard-read', 'clipboard-write'] };
  const { page, card } = await start(t, { look });
  const add = async (name) => {
    await page.getByLabel('Domain', { exact: true }).fill(name);
    await page.getByRole('button', { name: 'Add domain' }).click();
    await card(name).waitFor();
  };
  await add('www.bücher.example');
  const shown = card('www.bücher.example');
  await shows(shown.getByRole('heading'), 'xn--bcher-kva.example');
  await holdsFocus(shown.locator('.record'));
  await shows(shown.locator('caption'), 'xn--bcher-kva.example');
  assert.deepEqual(await shown.locator('.record code').allTextContents(), ['CNAME', 'www', HOST, '3600']);
  await shown.getByRole('button', { name: 'Copy Value' }).click();
  await announced(page, `Copied ${HOST}`);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), HOST);
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await shown.getByRole('button', { name: 'Copy Name' }).click();
  await announced(page, 'Copied www');

  await add('example.co.uk');
  const apex = await card('example.co.uk').locator('.record code').allTextContents();
  assert.deepEqual(apex, ['ALIAS or ANAME', '@', HOST, '3600']);
  await shows(card('example.co.uk').locator('.record'), 'Not every DNS provider');
  await page.getByLabel('Domain', { exact: true }).fill('EXAMPLE.co.uk');
  await page.getByRole('button', { name: 'Add domain' }).click();
  await shows(page.locator('#add-problem'), 'already');
});

test('the message for an apex has the addresses of the platform, and a pair of names its redirect', async (t) => {
  const look = { ...LOOKS.light, permissions: ['clipboard-read', 'clipboard-write'] };
  const { page, dns, card } = await start(t, { look });
  dns.records[HOST] = { A: '192.0.2.10', AAAA: '2001:db8:0:0:0:0:0:10' };
  await page.getByLabel('Domain', { exact: true }).fill('example.com');
  await page.getByLabel('Also add').check();
  await page.getByRole('button', { name: 'Add domain' }).click();
  const shown = card(/^example\.com/);
  await announced(page, 'example.com and www.example.com: added');
  await shows(card('www.example.com'), 'Redirects to example.com (301).');
  await shown.getByRole('button', { name: 'Verify' }).click();
  await shows(shown.locator('.message'), 'example.com has no addresses yet.');
  const rows = await shown.locator('.record tbody tr').allInnerTexts();
  const cells = rows.map((row) => row.replaceAll(/Copied|Copy \w+/g, '').split(/\s+/).filter(Boolean).join(' '));
  assert.deepEqual(cells, [`ALIAS or ANAME @ ${HOST} 3600`, 'A @ 192.0.2.10 3600', 'AAAA @ 2001:db8::10 3600']);
  // An ALIAS record has no form in zone files, so the addresses are copied.
  await shown.getByRole('button', { name: 'More for' }).click();
  await page.getByRole('menuitem', { name: 'Copy record' }).click();
  const lines = 'example.com. 3600 IN A 192.0.2.10\nexample.com. 3600 IN AAAA 2001:db8::10';
  await announced(page, 'Copied example.com. 3600 IN A 192.0.2.10');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), lines);
  await shown.getByRole('button', { name: 'More for' }).click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await shows(page.getByRole('dialog'), 'It stops working immediately. Delete its DNS record too, so that nobody else on the platform can serve the name. This also removes the redirect from www.example.com to example.com. www.example.com stays, and then serves the site itself, unless you remove it too.');
  await page.keyboard.press('Escape');
  assert.ok(!(await page.getByLabel('Also add').isChecked()));
});

test('a service without a platform shows no record, and says what it needs', async (t) => {
  const { page, card, comeBack } = await start(t, { domains: ['www.example.com'] });
  await card('www.example.com').locator('.record').waitFor();
  let host = '';
  await page.route('**/settings/api/project', async (route) => {
    const response = await route.fetch();
    const project = await response.json();
    project.platformHost = host || null;
    for (const { record } of project.domains) record.value = host;
    await route.fulfill({ response, json: project });
  });
  await comeBack();
  await shows(page.locator('#needs code'), 'petstore serve --platform-host HOST');
  await card('www.example.com').locator('.record').waitFor({ state: 'hidden' });
  host = 'another.example.net';
  await comeBack();
  await shows(card('www.example.com').locator('.record'), host);
});

test('verification is busy, and its result is shown and announced', async (t) => {
  const { page, dns, service, comeBack, card } = await start(t, { domains: ['www.example.com'] });
  const shown = card('www.example.com');
  const verify = shown.locator('.acts button');
  const [state, message] = [shown.locator('.state'), shown.locator('.message')];
  dns.records['www.example.com'] = { CNAME: 'elsewhere.example' };
  dns.hold();
  await verify.click();
  await shows(verify, 'Verifying…');
  assert.equal(await verify.getAttribute('aria-disabled'), 'true');
  dns.release();
  await shows(message, `points to elsewhere.example. It must point to ${HOST}`);
  await announced(page, 'It must point to');
  await shows(verify, /^Verify$/);
  await holdsFocus(verify);
  assert.equal(await verify.getAttribute('aria-disabled'), 'false');

  dns.records['www.example.com'] = RIGHT;
  await verify.press('Enter');
  await shows(state, 'verified');
  await announced(page, 'www.example.com: verified');
  await shows(verify, 'Re-verify');
  await holdsFocus(verify);
  await shown.locator('.badge', { hasText: 'Primary' }).waitFor();
  // Whoever changes the DNS provider needs it.
  await shows(shown.locator('caption'), 'The record in the DNS settings of example.com');
  await shows(shown.locator('.details'), 'Checks again in 10 min.');

  dns.records['example.com'] = { CAA: '0 issue "other.example"' };
  await verify.click();
  await shows(message, 'other.example');
  await shows(message, /CAA records of (www\.)?example\.com block/);
  assert.deepEqual((await shown.locator('.record code').allTextContents()).slice(0, 4), ['CAA', '@', '0 issue "letsencrypt.org"', '3600']);
  dns.records['www.example.com'] = {};
  await verify.click();
  await shows(state, 'wrong DNS record');
  await shows(shown.locator('caption'), 'Create this record');

  dns.records = { 'www.example.com': RIGHT };
  await verify.click();
  await shows(state, 'verified');
  await visit(service, 'www.example.com');
  await comeBack();
  await shows(state, 'live');
  await announced(page, 'www.example.com: live');
});

test('the page looks again by itself while somebody sees it', async (t) => {
  const { page, run, key, dns, card } = await start(t, { isOpen: false });
  await page.clock.install();
  await enter(page, key);
  await page.locator('#settings').waitFor();
  await run('domain', 'add', 'www.example.com');
  await page.clock.runFor(31_000);
  await shows(card('www.example.com'), 'waiting for DNS');
  dns.records['www.example.com'] = RIGHT;
  await run('domain', 'verify', 'www.example.com');
  await page.clock.runFor(31_000);
  await shows(card('www.example.com').locator('.state'), 'verified');
  await announced(page, 'www.example.com: verified');
});

test('a refresh keeps the focus, what is typed, what is chosen and what is there', async (t) => {
  const { page, run, comeBack, card } = await start(t, { domains: ['b.example.com', 'd.example.com'] });
  const field = page.getByLabel('Domain', { exact: true });
  const copy = card('d.example.com').getByRole('button', { name: 'Copy Name' });
  await page.getByLabel('From').selectOption('d.example.com');
  await field.fill('half.typ');
  if (await copy.isHidden()) await card('d.example.com').locator('.toggle').click();
  await copy.focus();
  await page.evaluate(() => document.querySelectorAll('.card *').forEach((node) => (node.isOld = true)));
  for (const [words, there] of [
    [['add', 'a.example.com'], ['a', 'b', 'd']],
    [['add', 'c.example.com'], ['a', 'b', 'c', 'd']],
    [['remove', 'b.example.com'], ['a', 'c', 'd']],
  ]) {
    await run('domain', ...words);
    await comeBack();
    const areThere = (names) => [...document.querySelectorAll('h3')].map((node) => node.innerText[0]).sort().join() === names;
    await page.waitForFunction(areThere, there.join());
    await holdsFocus(copy);
  }
  assert.equal(await field.inputValue(), 'half.typ');
  assert.equal(await page.getByLabel('From').inputValue(), 'd.example.com');
  // Times are written again once the service has checked a domain by itself.
  const isOld = (node) => [...node.querySelectorAll(':not(time)')].every((part) => part.isOld);
  assert.ok(await card('d.example.com').evaluate(isOld));
  // The element that has the focus goes.
  await run('domain', 'remove', 'd.example.com');
  await comeBack();
  await holdsFocus(page.locator('#domains-title'));
  assert.equal(await page.getByLabel('From').inputValue(), '');
});

test('a request that fails says so and takes nothing away', async (t) => {
  const { page, service, comeBack, card } = await start(t, { domains: ['www.example.com'] });
  const trouble = page.locator('#trouble');
  await page.route('**/settings/api/**', (route) => route.abort());
  await comeBack();
  await shows(trouble, 'The service is not responding');
  await card('www.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('www.example.com').locator('.problem'), 'The service is not responding');
  await page.unroute('**/settings/api/**');
  await comeBack();
  await trouble.waitFor({ state: 'hidden' });
});

test('a key that is revoked during use leads back to its field', async (t) => {
  const { page, said, service, card } = await start(t, { domains: ['www.example.com'] });
  const [field, problem] = [page.getByLabel('API key', { exact: true }), page.locator('#key-problem')];
  const open = card('www.example.com');
  await service.run('key', 'revoke', 'operator');
  await open.getByRole('button', { name: 'Verify' }).click();
  await shows(problem, 'Your key no longer works: it was revoked or has expired. Enter another key.');
  await holdsFocus(field);
  assert.ok((await page.locator('#settings').isHidden()) && (await page.locator('#trouble').isHidden()));
  await enter(page, await service.run('key', 'add', 'next', '--admin'));
  await open.waitFor();
  assert.ok(await open.locator('.problem').isHidden());
  assert.ok(await problem.isHidden());

  await open.getByRole('button', { name: 'More for' }).click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await service.run('key', 'revoke', 'next');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await shows(problem, 'Your key no longer works');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await holdsFocus(field);
  assert.deepEqual(unexpected(said), []);
});

test('the menu and the question before a removal can be used with the keyboard', async (t) => {
  const { page, run, dns, comeBack, card } = await start(t, { domains: ['a.example.com', 'b.example.com', 'c.example.com'] });
  dns.records = { 'b.example.com': RIGHT, 'c.example.com': RIGHT };
  await run('domain', 'verify', 'b.example.com');
  await run('domain', 'verify', 'c.example.com');
  await comeBack();
  await shows(card('c.example.com').locator('.state'), 'verified');
  const button = (name) => page.getByRole('button', { name: `More for ${name}` });
  const item = page.getByRole('menuitem', { name: 'Remove' });
  const question = page.getByRole('dialog');
  const more = button('b.example.com');
  await more.focus();
  const first = page.getByRole('menuitem', { name: 'Copy record' });
  for (const [key, focused] of [['Enter', first], [' ', first], ['ArrowDown', first], ['ArrowUp', item]]) {
    await page.keyboard.press(key);
    await holdsFocus(focused);
    assert.equal(await more.getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('Escape');
    await holdsFocus(more);
    assert.equal(await more.getAttribute('aria-expanded'), 'false');
  }
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await item.waitFor({ state: 'hidden' });

  for (const leave of ['Enter', 'Escape']) {
    await more.focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await shows(question, 'Remove b.example.com?');
    await holdsFocus(page.getByRole('button', { name: 'Cancel' }));
    await page.keyboard.press(leave);
    await question.waitFor({ state: 'hidden' });
    await holdsFocus(more);
  }
  for (const [name, consequence] of [
    ['b', '. There is no primary domain now'],
    ['c', ''],
  ]) {
    // Those that were added in different seconds stand in the order of their times, others in that of their names.
    const neighbour = await card(`${name}.example.com`).evaluate(
      (node) => (node.nextElementSibling ?? node.previousElementSibling).querySelector('.toggle').textContent,
    );
    await button(`${name}.example.com`).click();
    await item.click();
    await question.getByRole('button', { name: 'Remove' }).click();
    await card(`${name}.example.com`).waitFor({ state: 'detached' });
    await holdsFocus(card(neighbour).locator('.toggle'));
    await announced(page, `${name}.example.com is removed${consequence}`);
  }
  // Somebody else was quicker: the question stays, and says so. The list was read before.
  await page.locator('#question-yes[aria-disabled=false]').waitFor({ state: 'attached' });
  await run('domain', 'remove', 'a.example.com');
  await button('a.example.com').click();
  await item.click();
  await question.getByRole('button', { name: 'Remove' }).click();
  await shows(question, "no domain 'a.example.com'");
  await page.keyboard.press('Escape');
});

test('a domain becomes primary, and others lead to it', async (t) => {
  const { page, dns, run, key, card } = await start(t, { domains: ['old.example.com', 'www.example.com'] });
  dns.records = { 'old.example.com': RIGHT, 'www.example.com': RIGHT };
  await run('domain', 'verify', 'old.example.com');
  await run('domain', 'verify', 'www.example.com');
  await page.reload();
  await enter(page, key);
  await card('old.example.com').locator('.badge', { hasText: 'Primary' }).waitFor();
  await page.getByRole('button', { name: 'More for www.example.com' }).click();
  await page.getByRole('menuitem', { name: 'Make primary' }).click();
  await card('www.example.com').locator('.badge', { hasText: 'Primary' }).waitFor();
  await announced(page, 'www.example.com is primary');
  await holdsFocus(page.getByRole('button', { name: 'More for www.example.com' }));
  assert.equal(await page.locator('.badge:visible', { hasText: 'Primary' }).count(), 1);

  const [add, problem, rows] = [page.getByRole('button', { name: 'Add redirect' }), page.locator('#redirect-problem'), page.locator('#redirects li')];
  await add.click();
  await shows(problem, 'Choose the domain');
  await page.getByLabel('From').selectOption('www.example.com');
  await page.getByLabel('To', { exact: true }).selectOption('old.example.com');
  await add.click();
  await shows(problem, 'www.example.com is the primary domain');
  await page.getByLabel('From').selectOption('old.example.com');
  await page.getByLabel('To', { exact: true }).selectOption('petstore.sites.example.net');
  await page.getByLabel('Status').selectOption('308');
  await add.click();
  await shows(rows, /old\.example\.com.*petstore\.sites\.example\.net.*308/s);
  await problem.waitFor({ state: 'hidden' });
  await shows(card('old.example.com'), 'Redirects to petstore.sites.example.net (308).');
  await page.getByRole('button', { name: 'Remove the redirect from old.example.com' }).click();
  await rows.waitFor({ state: 'detached' });
  await holdsFocus(page.locator('#redirects-title'));
});

test('the newest domain comes first, and one at a time is open', async (t) => {
  const domains = ['a.example.com', 'b.example.com', 'c.example.com'];
  const { page, said, dns, service, comeBack, card, key } = await start(t, { domains, isOpen: false });
  await page.route('**/settings/api/project', async (route) => {
    const response = await route.fetch();
    const project = await response.json();
    project.domains.forEach((domain, at) => (domain.addedAt = `2026-01-0${at + 1}T00:00:00Z`));
    await route.fulfill({ response, json: project });
  });
  await enter(page, key);
  await card('c.example.com').waitFor();
  const names = await page.locator('.card h3').allInnerTexts();
  assert.deepEqual(names.map((name) => name[0]), ['c', 'b', 'a']);
  const toggle = (label) => card(`${label}.example.com`).locator('.toggle');
  const open = async () => (await page.locator('.toggle[aria-expanded="true"]').allInnerTexts()).join();
  const height = async (label) => (await card(`${label}.example.com`).boundingBox()).height;
  // The first that waits.
  assert.equal(await open(), 'c.example.com');
  dns.records['b.example.com'] = { CNAME: 'elsewhere.example' };
  await card('b.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('b.example.com').locator('.state'), 'wrong DNS record');
  // A row tells the reason, and stays short.
  await card('b.example.com').locator('.why', { hasText: 'points to elsewhere.example' }).waitFor();
  assert.ok((await height('b')) < 90, `${await height('b')} px`);
  assert.equal(await open(), 'c.example.com');
  await toggle('b').press('Enter');
  assert.equal(await open(), 'b.example.com');
  dns.records['b.example.com'] = RIGHT;
  await card('b.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('b.example.com').locator('.state'), 'verified');
  await visit(service, 'b.example.com');
  await comeBack();
  await shows(card('b.example.com').locator('.state'), 'live');
  // Nothing closes while somebody works there.
  assert.equal(await open(), 'b.example.com');
  await shows(card('b.example.com').locator('.record'), HOST);
  await toggle('b').press('Enter');
  assert.equal(await open(), '');
  assert.ok((await height('b')) < 70, `${await height('b')} px`);
  await comeBack();
  assert.equal(await open(), '');
  await holdsFocus(toggle('b'));
  assert.deepEqual(said, []);
});

test('a name and a value in a record are broken between labels, and a type never', async (t) => {
  const name = `${'long-'.repeat(9)}one.${'long-'.repeat(9)}two.example.com`;
  for (const look of Object.values(LOOKS)) {
    const { page } = await start(t, { domains: [name], look });
    const lines = (head) =>
      page.locator(`.card td[data-head="${head}"] code`).evaluate((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
      });
    for (const head of ['Type', 'Value', 'TTL']) assert.equal(await lines(head), 1, `${head} at ${look.viewport.width} px`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
});

test('a record is copied from the menu', async (t) => {
  const look = { ...LOOKS.light, permissions: ['clipboard-read', 'clipboard-write'] };
  const { page } = await start(t, { look, domains: ['www.example.com'] });
  const copy = async () => {
    await page.getByRole('button', { name: 'More for www.example.com' }).click();
    await page.getByRole('menuitem', { name: 'Copy record' }).click();
  };
  // The mark goes by itself.
  const marked = page.locator('.copied', { hasText: 'Copied' }).waitFor();
  await copy();
  await announced(page, `Copied www.example.com. 3600 IN CNAME ${HOST}.`);
  await marked;
  await page.locator('.copied').waitFor({ state: 'hidden' });
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `www.example.com. 3600 IN CNAME ${HOST}.`);
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await copy();
  await holdsFocus(page.locator('.record'));
});

test('the page links to the page on domains, where the site is', async (t) => {
  const { page, service } = await start(t, { isOpen: false });
  // A browser that is given the admin address alone is led there.
  await page.goto(service.admin);
  assert.equal(page.url(), `${service.admin}/settings/domains`);
  const links = page.locator('a[href$="/docs/domains"]');
  assert.equal(await links.count(), 2);
  await page.getByRole('link', { name: 'Custom domains', exact: true }).first().click();
  await page.getByRole('heading', { level: 1, name: 'Custom domains' }).waitFor();
  assert.equal(page.url(), `${service.url}/docs/domains`);
});

test('fourteen closed domains fit into a window, and an open one numbers what is left to do', async (t) => {
  const domains = Array.from({ length: 14 }, (_, at) => `shop-${at}.${at === 9 ? 'a-rather-long-name.'.repeat(4) : ''}example.com`);
  const { page, dns, card } = await start(t, { domains });
  dns.records['shop-0.example.com'] = { A: '192.0.2.99', AAAA: '2001:db8:0:0:0:0:0:1' };
  dns.records['shop-1.example.com'] = { CNAME: 'elsewhere.example' };
  dns.records['shop-2.example.com'] = { CNAME: HOST, A: '192.0.2.99' };
  // The page opens the newest of them, which is any if they were added in more than one second.
  await page.locator('.toggle[aria-expanded="true"]').click();
  for (const at of [0, 1, 2]) {
    await card(`shop-${at}.example.com`).getByRole('button', { name: 'Verify' }).click();
    await shows(card(`shop-${at}.example.com`).locator('.state'), 'wrong DNS record');
  }
  await shows(card('shop-0.example.com').locator('.why'), /^Has other records: A 192\.0\.2\.99, AAAA 2001:db8::1\.$/);
  await shows(card('shop-1.example.com').locator('.why'), /^Points to elsewhere\.example\.$/);
  const height = async () => (await page.locator('#domains').boundingBox()).height;
  const rows = await page.locator('.card').evaluateAll((all) => all.map((node) => node.getBoundingClientRect().height));
  assert.ok(Math.max(...rows) < 56, `${rows}`);
  assert.ok((await height()) <= 1000, `${await height()} px`);
  for (const [at, steps] of [
    [0, [/^Delete these records of shop-0\.example\.com: A 192\.0\.2\.99, AAAA 2001:db8::1\. A name with/, /^Create this record/, /^Choose Verify/]],
    [1, [/^Change the record to this one/, /^Choose Verify/]],
    [2, [/^Delete this record/, /^Choose Verify/]],
    [3, [/^Create this record/, /^Choose Verify/]],
  ]) {
    const shown = card(`shop-${at}.example.com`);
    await shown.locator('.toggle').click();
    // The first one has two records to delete, and a sentence about them.
    assert.ok((await height()) <= (at === 0 ? 1200 : 1100), `${await height()} px with ${at} open`);
    const seen = await shown.locator('.steps > li').allInnerTexts();
    assert.equal(seen.length, steps.length, seen.join(' | '));
    steps.forEach((step, number) => assert.match(seen[number], step));
    // Nothing is said twice.
    assert.equal((await shown.locator('.details').innerText()).split('Delete').length, seen[0].startsWith('Delete') ? 2 : 1);
  }
});
