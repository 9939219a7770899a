// Drives Debian's Firefox over WebDriver BiDi (w3.org/TR/webdriver-bidi), which Firefox speaks by itself.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { TARGET } from './harness.mjs';

const { ws: WebSocket } = createRequire(join(TARGET, 'site', 'package.json'))('playwright-core/lib/utilsBundle');

export const ENTER = '\uE007';
const quoted = JSON.stringify;

// Starts a headless Firefox with a profile of its own. `said` has what went to the console.
export async function firefox() {
  const profile = mkdtempSync(join(tmpdir(), 'petstore-firefox-'));
  const child = spawn(process.env.FIREFOX ?? 'firefox-esr', ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'], {
    env: { ...process.env, HOME: profile },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const address = await new Promise((resolve, reject) => {
    let log = '';
    child.on('error', reject).on('exit', () => reject(new Error(log)));
    child.stderr.setEncoding('utf8').on('data', (text) => {
      log += text;
      const [, found] = /WebDriver BiDi listening on (ws:\S+)/.exec(log) ?? [];
      if (found) resolve(found);
    });
  });
  const socket = new WebSocket(`${address}/session`);
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  const waiting = new Map();
  const said = [];
  socket.on('message', (data) => {
    const { type, id, result, message, params } = JSON.parse(data);
    if (type === 'event') said.push(`${params.level}: ${params.text}`);
    else if (type === 'error') waiting.get(id).reject(new Error(message));
    else waiting.get(id).resolve(result);
  });
  const call = (method, params) =>
    new Promise((resolve, reject) => {
      const id = waiting.size;
      waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, method, params }));
    });
  await call('session.new', { capabilities: {} });
  await call('session.subscribe', { events: ['log.entryAdded'] });
  const [{ context }] = (await call('browsingContext.getTree', {})).contexts;
  const act = (source) => call('input.performActions', { context, actions: [source] });

  // Evaluates an expression in the page.
  async function evaluate(expression) {
    const { result, exceptionDetails } = await call('script.evaluate', { expression, target: { context }, awaitPromise: true });
    if (exceptionDetails) throw new Error(`${exceptionDetails.text}: ${expression}`);
    return result.value;
  }
  // Waits until an expression holds.
  async function until(expression) {
    const end = Date.now() + 60_000;
    // A page that is being left answers with an error.
    while (!(await evaluate(`Boolean(${expression})`).catch(() => false))) {
      if (Date.now() > end) throw new Error(`${expression} never holds: ${await evaluate('document.body.innerText')}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return {
    said,
    evaluate,
    until,
    goto: (url) => call('browsingContext.navigate', { context, url, wait: 'complete' }),
    shows: (css, text) => until(`document.querySelector(${quoted(css)})?.innerText.includes(${quoted(text)})`),
    async click(css) {
      await until(`document.querySelector(${quoted(css)})?.checkVisibility()`);
      await evaluate(`document.querySelector(${quoted(css)}).scrollIntoView({ block: 'center' })`);
      const { nodes } = await call('browsingContext.locateNodes', { context, locator: { type: 'css', value: css }, maxNodeCount: 1 });
      const origin = { type: 'element', element: { sharedId: nodes[0].sharedId } };
      const actions = [{ type: 'pointerMove', x: 0, y: 0, origin }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
      await act({ type: 'pointer', id: 'mouse', actions });
    },
    // Presses keys one after the other, with this many milliseconds for each.
    press: (keys, duration = 0) =>
      act({ type: 'key', id: 'keys', actions: [...keys].flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }, { type: 'pause', duration }]) }),
    async close() {
      await call('browser.close', {}).catch(() => child.kill());
      await ended;
      rmSync(profile, { recursive: true, maxRetries: 20 });
    },
  };
}
