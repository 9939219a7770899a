// The search: what people ask leads to the right place, by the ranking and the index that the service serves.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { barriers, launch, LOOKS, open, serve } from './harness.mjs';

let service;
let browser;
let find;
let isAlmost;
before(async () => {
  [service, browser] = await Promise.all([serve(), launch()]);
  const text = async (path) => (await fetch(new URL(path, service.url))).text();
  const folder = /"(\/assets\/[^"]+)site\.css"/.exec(await text('/'))[1];
  const rank = await import(`data:text/javascript,${encodeURIComponent(await text(`${folder}search-rank.js`))}`);
  const index = rank.prepare(JSON.parse(await text(`${folder}search.json`)));
  find = (query) => rank.find(index, query);
  isAlmost = rank.isAlmost;
});
after(async () => {
  await browser?.close();
  await service?.stop();
});

// Questions of people, and the places that answer them.
const QUERIES = [
  ['update pet', '/#updatePet', '/docs/data#editing-pets'],
  ['conflict', '/docs/errors#precondition_failed', '/docs/errors#rejected', '/docs/errors#idempotency_key_reused'],
  ['409', '/docs/errors#rejected'],
  ['sandbox', '/docs/testing'],
  ['download spec', '/openapi.json'],
  ['bulk', '/docs/many'],
  ['codegen', '/docs/generated', '/openapi.json'],
  ['jest', '/docs/recipes#jest'],
  ['kong', '/docs/generated#gateways'],
  ['excel', '/docs/spreadsheets#from-excel-and-other-spreadsheets', '/docs/spreadsheets'],
  ['xlsx', '/docs/spreadsheets#from-excel-and-other-spreadsheets'],
  ['semicolon', '/docs/spreadsheets#from-excel-and-other-spreadsheets'],
  ['umlaut', '/docs/spreadsheets', '/docs/spreadsheets#from-excel-and-other-spreadsheets'],
  ['photo', '/docs/not'],
  ['price', '/docs/not'],
  ['roles', '/docs/not'],
  ['staff', '/docs/not'],
  ['windows', '/docs/not'],
  ['ipv6', '/docs/not'],
  ['traefik', '/docs/not'],
  ['uninstall', '/docs/not'],
  ['journald', '/docs/not'],
  ['forgot key', '/docs/not'],
  ['webhook', '/docs/telling', '/docs/not'],
  ['notify', '/docs/telling', '/docs/not'],
  ['audit', '/docs/telling', '/docs/not'],
  ['statistics', '/docs/monthly', '/docs/not'],
  ['undo import', '/docs/undo'],
  ['mark as sold', '/docs/changing#sell-a-pet-once', '/docs/not', '/docs/changing', '/docs/many'],
  ['find by name', '/docs/not', '/docs/data#the-page-for-a-shop'],
  ['authentication', '/docs/keys'],
  ['create pet', '/#createPet'],
  ['add pet', '/#createPet'],
  ['list pets', '/#listPets'],
  ['delete pet', '/docs/data#editing-pets', '/docs/changing#delete-a-pet'],
  ['status', '/#listPets-parameters', '/#createPet-request-body'],
  ['limit', '/#listPets-parameters'],
  ['cors', '/docs/browsers'],
  ['429', '/docs/limits'],
  ['getting started', '/docs/quickstart'],
  ['pagniation', '/docs/pagination'],
  ['unauthorised', '/docs/errors#unauthorized'],
  ['rate limit', '/docs/limits'],
  ['idempotency', '/#createPet-parameters', '/docs/retries'],
  ['401', '/docs/errors#unauthorized'],
  ['invalid_json', '/docs/errors#invalid_json'],
  ['etag', '/#listPets-response-headers'],
  ['healthz', '/docs/monitoring#health-checks', '/docs/install#paths'],
  ['cname', '/docs/domains'],
  ['rotate key', '/docs/keys#rotating-a-key'],
  ['how do I get an API key', '/docs/keys', '/docs/keys#the-first-key'],
  ['bearer token', '/docs/keys'],
  ['next page', '/docs/pagination'],
  ['change the port', '/docs/configuration#listen', '/docs/install#ports'],
  ['what does 503 mean', '/docs/errors#overloaded', '/docs/troubleshooting#it-returns-503'],
  ['retry a request safely', '/docs/retries'],
  ['get one pet by id', '/#getPet'],
  ['filter by status', '/#listPets-parameters'],
  ['maximum body size', '/docs/limits#request-body'],
  ['PETSTORE_LISTEN', '/docs/configuration#listen'],
  ['read only key', '/docs/keys#read-only-and-admin-keys', '/docs/keys#creating-keys'],
  ['my own domain', '/docs/domains'],
  ['someone stole my key', '/docs/keys#revoking-a-key', '/docs/keys#keeping-a-key-safe'],
  ['is getPet deprecated', '/docs/versions', '/#getPet'],
  ['categoryid', '/#createPet-request-body'],
  ['location header', '/#createPet-response-headers'],
  ['timeout', '/docs/limits#timeouts'],
  ['release notes', '/docs/changelog'],
  ['backup', '/docs/backups', '/docs/backups#nightly-backups'],
  ['prevent duplicate pets', '/docs/retries'],
  ['docker', '/docs/install', '/docs/install#docker'],
  ['nginx', '/docs/proxy'],
  ['prometheus', '/docs/monitoring'],
  ['upgrade to a new version', '/docs/upgrades'],
  ['three nodes with rqlite', '/docs/cluster'],
  ['too many requests', '/docs/limits'],
  ['Too Many Requests', '/docs/errors#overloaded'],
  ['how do i log in', '/docs/keys'],
  ['sold', '/#listPets-parameters', '/docs/changing#sell-a-pet-once', '/docs/changing#count-pets'],
  ['pending', '/#listPets-parameters', '/#createPet-request-body'],
  ['mark pet as sold', '/docs/data#editing-pets', '/docs/changing#change-a-pet'],
  ['change status of a pet', '/docs/data#editing-pets', '/docs/changing#change-a-pet'],
  ['openapi spec', '/openapi.json'],
  ['swagger', '/openapi.json'],
  ['postman', '/openapi.json'],
  ['download openapi', '/openapi.json'],
  ['json schema', '/openapi.json'],
  ['sdk', '/openapi.json'],
  ['typescript client', '/openapi.json'],
  ['Failed to fetch', '/docs/browsers'],
  ['double submit', '/docs/retries'],
  ['double click', '/docs/retries'],
  ['port already in use', '/docs/troubleshooting#it-does-not-start'],
  ['address already in use', '/docs/troubleshooting#it-does-not-start'],
  ['database is locked', '/docs/troubleshooting#it-returns-503'],
  ['http 401 bearer', '/docs/keys', '/docs/errors#unauthorized'],
  ['ssl certificate not issued', '/docs/domains'],
  ['wrong_target', '/docs/domains#if-verification-fails'],
  ['PetstoreDown', '/docs/monitoring#alerts'],
  ['settings', '/docs/configuration'],
  ['replace getPet', '/docs/versions#replacing-get-v1petspetid'],
  ['count pets by status', '/docs/changing#count-pets'],
  ['sell a pet only once', '/docs/changing#sell-a-pet-once'],
  ['how many pets are there', '/docs/changing#count-pets', '/docs/pagination#from-one-id-on'],
  ['search pets by name', '/docs/pagination#find-pets'],
  ['test a restore', '/docs/first-evening#6-rehearse-a-restore', '/docs/backups#restoring'],
];

test('the right place is among the first three results', () => {
  assert.ok(QUERIES.length >= 60);
  const missed = QUERIES.map(([query, ...places]) => [query, places, find(query).slice(0, 3).map(({ path }) => path)]);
  assert.deepEqual(missed.filter(([, places, found]) => !found.some((path) => places.includes(path))), []);
});

test('weak matches are not counted, and what the service does not have is not found', () => {
  const many = QUERIES.map(([query]) => [query, find(query).length]).filter(([, count]) => count > 40);
  assert.deepEqual(many, []);
  for (const query of ['picture', 'graphql']) assert.deepEqual(find(query), [], query);
  assert.ok(find('idempotency').some(({ path }) => path === '/docs/retries'));
});

test('one wrong letter is forgiven in words of five letters or more', () => {
  const best = (query) => find(query)[0]?.path;
  const right = best('pagination');
  for (const wrong of ['pagnation', 'paginnation', 'paginatiom', 'pagniation', 'agination']) {
    assert.equal(best(wrong), right, wrong);
  }
  for (const [one, other] of [['ab', 'ba'], ['abc', 'ab'], ['abc', 'abd'], ['ab', 'xab'], ['abc', 'axc']]) {
    assert.ok(isAlmost(one, other) && isAlmost(other, one), `${one}, ${other}`);
  }
  for (const [one, other] of [['abcd', 'ab'], ['abcd', 'badc'], ['abc', 'cba'], ['abc', 'xyc']]) {
    assert.ok(!isAlmost(one, other), `${one}, ${other}`);
  }
  assert.deepEqual(find('xyzzy'), []);
  assert.deepEqual(find('qet'), []);
});

test('the search opens with /, Ctrl+K and ⌘K, and always has something to offer', async () => {
  for (const look of Object.values(LOOKS)) {
    const { page, said, close } = await open(browser, look);
    await page.goto(`${service.url}/docs/retries`);
    const field = page.getByRole('combobox', { name: 'Search' });
    const options = page.locator('#search-results [role=option]');
    const paths = () => options.evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    for (const keys of ['/', 'Control+k', 'Meta+k']) {
      await page.keyboard.press(keys);
      await options.first().waitFor();
      const offered = await paths();
      for (const path of ['/docs/quickstart', '/docs/keys', '/#createPet', '/docs/errors']) assert.ok(offered.includes(path), path);
      assert.deepEqual(await barriers(page), []);
      await field.fill('xyzzy');
      await page.getByText("The guide has nothing for 'xyzzy'. Try one of these:").waitFor();
      assert.deepEqual(await paths(), offered);
      // Nothing was asked for that Enter could open.
      assert.equal(await page.locator('#search [aria-selected=true]').count(), 0);
      assert.equal(await field.getAttribute('aria-activedescendant'), null);
      await page.keyboard.press('Enter');
      assert.ok(page.url().endsWith('/docs/retries'));
      await page.keyboard.press('ArrowDown');
      assert.equal(await field.getAttribute('aria-activedescendant'), 'search-0');
      await field.fill('');
      await page.keyboard.press('Escape');
      assert.equal(await field.isVisible(), false);
    }
    // In a field, a slash is a letter, and Ctrl+K still opens the search.
    await page.goto(service.url);
    await page.getByLabel('API key', { exact: true }).press('/');
    assert.equal(await field.isVisible(), false);
    // A key would be checked.
    await page.getByLabel('API key', { exact: true }).fill('');
    await page.getByLabel('API key', { exact: true }).press('Control+k');
    await field.fill('add pet');
    await options.first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator('#createPet[open]').waitFor();
    assert.deepEqual(said, []);
    await close();
  }
});

test('results are in groups, that of the best one first, and show the phrase that was searched', async () => {
  const { page, close } = await open(browser);
  await page.goto(`${service.url}/docs/retries`);
  await page.keyboard.press('/');
  const field = page.getByRole('combobox', { name: 'Search' });
  const groups = page.locator('#search-results [role=group]');
  for (const [query, name] of [['add pet', 'Operations'], ['unauthorized', 'Errors'], ['petstore_listen', 'Configuration'], ['backup', 'Guide']]) {
    await field.fill(query);
    await page.getByRole('group', { name }).first().waitFor();
    assert.equal(await groups.first().locator('p').textContent(), name, query);
  }
  await field.fill('address already in use');
  const best = page.getByRole('option').first();
  await best.filter({ hasText: 'Address already in use' }).waitFor();
  assert.equal(await best.getAttribute('href'), '/docs/troubleshooting#it-does-not-start');
  assert.deepEqual(await barriers(page), []);
  await close();
});

test('a page that is not there leads to the search', async () => {
  const { page, close } = await open(browser);
  await page.goto(`${service.url}/docs/nowhere`);
  await page.getByRole('button', { name: 'Search the site' }).click();
  await page.getByRole('combobox', { name: 'Search' }).fill('errors');
  await page.getByRole('option').first().click();
  await page.waitForURL(`${service.url}/docs/errors`);
  await close();
});
