// A petstore of its own for each test file, and a browser that reports the errors of every page.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target');
export const SHOTS = join(TARGET, 'site', 'screenshots');
export const KEY = 'secret-of-the-test';

// The packages lie in the target folder, away from the sources.
const require = createRequire(join(TARGET, 'site', 'package.json'));
const { chromium } = require('playwright-core');
const { source } = require('axe-core');

const PROGRAM = process.env.PETSTORE ?? join(TARGET, 'release', 'petstore');

// Starts the release binary; `words` are more words of its command line.
export async function serve(...words) {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-site-'));
  const database = join(folder, 'petstore.db');
  const hasOwn = words.includes('--database') || words.includes('--ephemeral');
  const child = spawn(PROGRAM, ['--listen', '127.0.0.1:0', ...(hasOwn ? [] : ['--database', database]), ...words], {
    env: { ...process.env, PETSTORE_API_KEY: KEY },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (log += text));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async () => {
    const next = lines.next().then(({ value }) => value);
    return Promise.race([next, ended.then((code) => `it ended with ${code}`)]);
  };
  const first = await line();
  const url = /^petstore listening on (http:\S+)$/.exec(first)?.[1];
  assert.ok(url, `the service started: ${first}`);
  const admin = words.includes('--admin') ? /^petstore admin on (http:\S+)$/.exec(await line())[1] : null;
  // A test that fails stops no service: its file must end all the same.
  for (const part of [child, child.stdout, child.stderr]) part.unref();
  process.on('exit', () => child.kill('SIGKILL'));
  return {
    url,
    admin,
    database,
    logged: () => log,
    // Runs a command on its database, and returns what it prints.
    async run(...command) {
      const { stdout } = await promisify(execFile)(PROGRAM, [...command, '--database', database]);
      return stdout.trim();
    },
    async stop() {
      child.ref();
      child.kill();
      assert.equal(await ended, 0, log);
      rmSync(folder, { recursive: true });
    },
  };
}

// A headless Chromium that asks nobody by itself.
export function launch() {
  mkdirSync(SHOTS, { recursive: true });
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export const LOOKS = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  dark: { viewport: { width: 768, height: 1024 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light', isMobile: true, hasTouch: true },
};

// A page that keeps in mind what went to the console and who was asked.
export async function open(browser, options = LOOKS.light) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const said = [];
  const asked = [];
  page.on('console', (message) => {
    said.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => said.push(`error: ${error.message}`));
  page.on('request', (request) => asked.push(request.url()));
  return { page, said, asked, close: () => context.close() };
}

// Holds back the requests to an address, also those not yet sent, until what it returns is called.
export async function hold(page, address) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(address, (route) => released.then(() => route.continue()));
  return release;
}

// Twenty names as somebody types them, one after the other, without a look at the page; and the interval between two keys.
export const TYPED = (
  'Maximilian,Constantine,Bartholomew,Rex,Zoë,Maximilian,O’Malley the 2nd,Wilhelmina,Tom,Bo,' +
  'Alexandrina,Mia,Leo,Søren,Jean-Luc,Ida,Philomena,Kit,Theodora,Emil'
).split(',');
export const KEY_MS = 60;

// A server in front of a service that delays its responses below /v1 for so long that they arrive in another order.
const DELAYS_MS = [700, 0, 350];
export async function reordered({ url }) {
  let count = 0;
  const pass = async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host, connection, ...headers } = request.headers;
    const body = chunks.length ? Buffer.concat(chunks) : undefined;
    const answer = await fetch(url + request.url, { method: request.method, headers, body });
    const text = Buffer.from(await answer.arrayBuffer());
    const fields = Object.fromEntries([...answer.headers].filter(([name]) => !/^(?:content-encoding|content-length|connection)$/.test(name)));
    const delay = request.url.startsWith('/v1/') ? DELAYS_MS[count++ % DELAYS_MS.length] : 0;
    setTimeout(() => response.writeHead(answer.status, fields).end(text), delay);
  };
  // The page may still ask while both stop.
  const server = createServer((request, response) => pass(request, response).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}

// The names of the first twenty pets of a service.
export async function namesOf({ url }) {
  const pets = await fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${KEY}` } });
  return (await pets.json()).map(({ name }) => name);
}

// The parts of one operation in the reference.
export function panel(page, id) {
  const block = page.locator(`#${id}`);
  const sample = (language) => block.locator(`figure[data-language=${language}] code`);
  return {
    block,
    summary: block.locator('summary').first(),
    send: block.locator('.send button'),
    note: block.locator('.send .note'),
    status: block.locator('.result .status'),
    stale: block.locator('.result .stale'),
    body: block.locator('.result .content'),
    curl: sample('curl'),
    sample,
  };
}

// Waits until the text is there, and says what stood there instead.
export async function assertText(locator, text) {
  await locator
    .filter({ hasText: text })
    .waitFor({ timeout: 30_000 })
    .catch(async () => assert.equal(await locator.textContent({ timeout: 1_000 }), text));
}

// Violations that axe-core holds to be serious or critical.
export async function barriers(page) {
  // Evaluated by the driver, as the page's own policy allows no foreign script.
  const { violations } = await page.evaluate(`${source}; axe.run(document)`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`);
}

// The pages in the navigation, so that none is forgotten.
export async function pages(service) {
  const html = await (await fetch(service.url)).text();
  const navigation = html.slice(html.indexOf('<nav'), html.indexOf('</nav>'));
  return [...navigation.matchAll(/href="([^"#]+)"/g)].map(([, path]) => path).filter((path) => path !== '/openapi.json');
}
