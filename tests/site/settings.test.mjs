// Project settings → Domains in a real browser, with a service and a DNS server of its own for each test.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LOOKS } from './harness.mjs';
import { announced, enter, holdsFocus, HOST, RIGHT, shows, start, unexpected, visit } from './settings.mjs';

test('a key that is wrong or lacks the scope is told why, and a right one is kept nowhere', async (t) => {
  const { page, said, asked, service, key } = await start(t, { isOpen: false });
  const field = page.getByLabel('API key', { exact: true });
  const problem = page.locator('#key-problem');
  await enter(page, 'wrong');
  await shows(problem, 'The API key is unknown, expired or revoked.');
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
  await holdsFocus(field);
  await enter(page, await service.run('key', 'add', 'plain'));
  await shows(problem, 'petstore key add NAME --admin');
  await enter(page, 'schlüssel');
  await shows(problem, 'letters, digits and punctuation');
  assert.ok(await page.locator('#settings').isHidden());

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
  await page.getByRole('button', { name: 'Forget the key' }).click();
  await field.waitFor();
  assert.ok(await page.locator('#settings').isHidden());
  assert.deepEqual(unexpected(said), []);
});

test('what keeps domains from being added is said, with the commands', async (t) => {
  const { page, service, comeBack } = await start(t, { isReady: false });
  const field = page.getByLabel('Domain', { exact: true });
  const [problem, needs] = [page.locator('#add-problem'), page.locator('#needs')];
  await shows(needs.locator('code').first(), 'petstore site plan pro');
  await field.fill('www.example.com');
  await field.press('Enter');
  await shows(problem.locator('code'), 'petstore site plan pro');
  assert.equal(await field.getAttribute('aria-describedby'), await problem.getAttribute('id'));
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
  await holdsFocus(field);

  await service.run('site', 'plan', 'pro');
  await page.getByRole('button', { name: 'Add domain' }).click();
  await shows(problem.locator('code'), 'petstore site deploy');
  await service.run('site', 'deploy');
  await comeBack();
  await needs.waitFor({ state: 'hidden' });
  await shows(page.locator('#plan'), 'pro');
  assert.equal(await field.inputValue(), 'www.example.com');
  for (const [name, why] of [['*.example.com', 'is not a domain name'], ['192.0.2.7', 'is an IP address'], [`x.${HOST}`, 'hosting platform']]) {
    await field.fill(name);
    await field.press('Enter');
    await shows(problem, why);
  }
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
  const { page, dns, card } = await start(t);
  dns.records[HOST] = { A: '192.0.2.10', AAAA: '2001:db8:0:0:0:0:0:10' };
  await page.getByLabel('Domain', { exact: true }).fill('example.com');
  await page.getByLabel('Also add').check();
  await page.getByRole('button', { name: 'Add domain' }).click();
  const shown = card(/^example\.com/);
  await announced(page, 'example.com and www.example.com: added');
  await shows(card('www.example.com'), 'Redirects to example.com (301).');
  await shown.getByRole('button', { name: 'Verify' }).click();
  await shows(shown.locator('.message'), 'addresses 192.0.2.10, 2001:db8::10');
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
  const verify = shown.locator('.actions button').first();
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
  await shown.locator('.badge', { hasText: 'primary' }).waitFor();
  assert.ok(await shown.locator('.record').isHidden());

  dns.records['example.com'] = { CAA: '0 issue "other.example"' };
  await verify.click();
  await shows(message, 'other.example');
  dns.records['www.example.com'] = {};
  await verify.click();
  await shows(state, 'wrong DNS record');
  assert.ok(await shown.locator('.record').isVisible());

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
  const isOld = (node) => [...node.querySelectorAll('*')].every((part) => part.isOld);
  assert.ok(await card('d.example.com').evaluate(isOld));
  // What has the focus goes.
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
  await shows(trouble, 'The service does not answer');
  await card('www.example.com').getByRole('button', { name: 'Verify' }).click();
  await shows(card('www.example.com').locator('.problem'), 'The service does not answer');
  await page.unroute('**/settings/api/**');
  await comeBack();
  await trouble.waitFor({ state: 'hidden' });
  await service.run('key', 'revoke', 'operator');
  await comeBack();
  await shows(trouble, 'unknown, expired or revoked');
  await card('www.example.com').waitFor();
  await enter(page, await service.run('key', 'add', 'next', '--admin'));
  await trouble.waitFor({ state: 'hidden' });
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
  for (const key of ['Enter', ' ', 'ArrowDown', 'ArrowUp']) {
    await page.keyboard.press(key);
    await holdsFocus(item);
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
    await page.keyboard.press('ArrowDown');
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
      (node) => (node.nextElementSibling ?? node.previousElementSibling).querySelector('h3').textContent,
    );
    await button(`${name}.example.com`).click();
    await item.click();
    await question.getByRole('button', { name: 'Remove' }).click();
    await card(`${name}.example.com`).waitFor({ state: 'detached' });
    await holdsFocus(card(neighbour).getByRole('heading'));
    await announced(page, `${name}.example.com is removed${consequence}`);
  }
  // Somebody else was quicker: the question stays, and says so.
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
  await card('old.example.com').locator('.badge', { hasText: 'primary' }).waitFor();
  await card('www.example.com').getByRole('button', { name: 'Make primary' }).click();
  await card('www.example.com').locator('.badge', { hasText: 'primary' }).waitFor();
  await announced(page, 'www.example.com is primary');
  await holdsFocus(card('www.example.com').getByRole('heading'));
  assert.equal(await page.locator('.badge:visible', { hasText: 'primary' }).count(), 1);

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

test('the newest domain comes first, and one that needs nothing is a line', async (t) => {
  const domains = ['a.example.com', 'b.example.com', 'c.example.com'];
  const { page, said, dns, service, comeBack, card } = await start(t, { domains });
  await page.route('**/settings/api/project', async (route) => {
    const response = await route.fetch();
    const project = await response.json();
    project.domains.forEach((domain, at) => (domain.addedAt = `2026-01-0${at + 1}T00:00:00Z`));
    await route.fulfill({ response, json: project });
  });
  await comeBack();
  await page.waitForFunction(() => [...document.querySelectorAll('h3')].map((node) => node.innerText[0]).join('') === 'cba');
  const calm = card('b.example.com');
  const toggle = calm.getByRole('button', { name: 'Details of b.example.com' });
  assert.ok(await toggle.isHidden());
  dns.records['b.example.com'] = RIGHT;
  await calm.getByRole('button', { name: 'Verify' }).click();
  await shows(calm.locator('.state'), 'verified');
  await visit(service, 'b.example.com');
  await comeBack();
  await shows(calm.locator('.state'), 'live');
  // Nothing closes while somebody works there.
  assert.equal(await toggle.getAttribute('aria-expanded'), 'true');
  await page.getByLabel('Domain', { exact: true }).focus();
  await comeBack();
  await calm.locator('.actions').waitFor({ state: 'hidden' });
  const { height } = await calm.boundingBox();
  assert.ok(height < 70, `${height} px`);
  await toggle.press('Enter');
  await calm.getByRole('button', { name: 'Re-verify' }).waitFor();
  await comeBack();
  await toggle.press('Enter');
  await calm.locator('.actions').waitFor({ state: 'hidden' });
  await holdsFocus(toggle);
  assert.deepEqual(said, []);
});

test('the page links to the page on domains, where the site is', async (t) => {
  const { page, service } = await start(t, { isOpen: false });
  const links = page.locator('a[href$="/docs/domains"]');
  assert.equal(await links.count(), 2);
  await page.getByRole('link', { name: 'Custom domains', exact: true }).first().click();
  await page.getByRole('heading', { level: 1, name: 'Custom domains' }).waitFor();
  assert.equal(page.url(), `${service.url}/docs/domains`);
});
