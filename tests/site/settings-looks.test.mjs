// Project settings → Domains in every look, with a domain in every state, and without JavaScript.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { barriers, LOOKS, SHOTS } from './harness.mjs';
import { RIGHT, shows, start, visit } from './settings.mjs';

for (const [look, options] of Object.entries(LOOKS)) {
  test(`every state is whole, silent and open to all: ${look}`, async (t) => {
    const labels = ['active', 'blocked', 'changed', 'conflict', 'hostile', 'leads', 'pending', 'verified'];
    const domains = [...labels.map((label) => `${label}.example.com`), 'bücher.example'];
    const started = await start(t, { domains, look: options });
    const { page, said, asked, dns, service, run, comeBack, card } = started;
    const has = (label, records) => (dns.records[`${label}.example.com`] = records);
    for (const label of ['active', 'blocked', 'changed', 'verified', 'leads']) has(label, RIGHT);
    has('conflict', { A: '192.0.2.7' });
    has('hostile', { CNAME: '<b>bold</b>.example' });
    const verify = async (label, text, name) => {
      await card(`${label}.example.com`).getByRole('button', { name }).click();
      await shows(card(`${label}.example.com`), text);
    };
    for (const label of ['active', 'blocked', 'changed', 'verified']) await verify(label, 'the certificate is created', 'Verify');
    // Only what is verified may be led to.
    await run('domain', 'redirect', 'add', 'leads.example.com', 'active.example.com');
    await verify('conflict', 'Delete this record of conflict.example.com: A 192.0.2.7.', 'Verify');
    await verify('hostile', '<b>bold', 'Verify');
    assert.equal(await page.locator('.card b').count(), 0);
    dns.records['example.com'] = { CAA: '0 issue "other.example"' };
    await verify('blocked', 'other.example', 'Re-verify');
    has('changed', {});
    await verify('changed', 'wrong DNS record', 'Re-verify');
    await visit(service, 'active.example.com');
    await comeBack();
    await shows(card('active.example.com'), 'live');
    const seen = await page.locator('.card').evaluateAll((all) => {
      const looks = all.map((node) => {
        const [pill, mark] = ['.state', '.mark'].map((part) => getComputedStyle(node.querySelector(part)));
        const shape = [mark.borderTopWidth, mark.borderRadius, mark.clipPath, mark.backgroundColor === pill.color].join();
        return [node.dataset.look, { colours: `${pill.color} ${pill.backgroundColor}`, shape, words: node.querySelector('.words').textContent }];
      });
      return looks.filter(([, { words }]) => ['waiting for DNS', 'wrong DNS record', 'live'].includes(words));
    });
    const looks = Object.fromEntries(seen);
    assert.deepEqual(Object.keys(looks).sort(), ['live', 'waiting', 'wrong']);
    for (const sign of ['colours', 'shape', 'words'])
      assert.equal(new Set(Object.values(looks).map((of) => of[sign])).size, 3, `${sign}: ${JSON.stringify(looks)}`);

    const isWhole = async (what) => {
      assert.deepEqual(await barriers(page), [], what);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${what} is ${wider} px wider than the window`);
      await page.screenshot({ path: join(SHOTS, `settings-${what}-${look}.png`), fullPage: true });
    };
    await isWhole('states');
    const other = await page.context().newPage();
    await other.goto(`${service.url}/docs/domains`);
    const [left, expected] = await Promise.all([page, other].map((one) => one.locator('h1').boundingBox()));
    assert.equal(left.x, expected.x, 'it stands where other pages stand');
    await other.close();
    dns.hold();
    await card('pending.example.com').getByRole('button', { name: 'Verify' }).click();
    await page.locator('.working').waitFor();
    await page.getByRole('button', { name: 'More for active.example.com' }).click();
    await isWhole('menu');
    await page.getByRole('menuitem', { name: 'Remove' }).click();
    await shows(page.getByRole('dialog'), 'the redirect from leads.example.com to active.example.com');
    await isWhole('question');
    dns.release();
    assert.deepEqual(said, []);
    assert.deepEqual(asked.filter((url) => !url.startsWith(`${service.admin}/`)), []);
    await page.reload();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await isWhole('key');
  });
}

test('without JavaScript it names the commands', async (t) => {
  const { page, said } = await start(t, { isOpen: false, look: { ...LOOKS.phone, javaScriptEnabled: false } });
  await page.locator('p', { hasText: 'This page needs JavaScript.' }).waitFor();
  await page.locator('td', { hasText: 'petstore domain verify NAME' }).waitFor();
  assert.ok(await page.getByLabel('API key', { exact: true }).isHidden());
  assert.deepEqual(said, []);
});
