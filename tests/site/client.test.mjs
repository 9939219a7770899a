// Clients of others: one that openapi-typescript makes of the OpenAPI description, and one that follows Link.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { KEY, ROOT, serve, TARGET } from './harness.mjs';

test('a client in TypeScript compiles, and calls each operation', async (t) => {
  const service = await serve('--experimental');
  t.after(() => service.stop());
  // Inside the folder of the packages, where the compiler and Node.js look for them.
  const cwd = join(TARGET, 'site', 'client');
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }');
  cpSync(join(ROOT, 'tests', 'site', 'client.ts'), join(cwd, 'client.ts'));
  const run = (program, ...words) => {
    const path = join(TARGET, 'site', 'node_modules', program);
    const failed = ({ stdout, stderr }) => assert.fail(`${program}\n${stdout}\n${stderr}`);
    return promisify(execFile)(process.execPath, [path, ...words], { cwd }).catch(failed);
  };
  await run('openapi-typescript/bin/cli.js', `${service.url}/openapi.json`, '--output', 'description.ts');
  await run('typescript/bin/tsc', '--strict', '--target', 'es2022', '--module', 'nodenext', 'client.ts');
  const { callEach } = await import(pathToFileURL(join(cwd, 'client.js')));
  const name = randomUUID();
  const { pet, pets, fetched, changes, codes } = await callEach(`${service.url}/v1`, KEY, name);
  assert.deepEqual(pet, { id: pet?.id, name, categoryId: 3, status: 'sold' });
  assert.deepEqual([pets, fetched], [[pet], pet]);
  assert.deepEqual(changes, [undefined, 1, 204]);
  assert.deepEqual(codes, ['not_found', 'not_implemented', 'unauthorized']);
});

// Imports one of the packages.
const load = (name) => import(pathToFileURL(createRequire(join(TARGET, 'site', 'package.json')).resolve(name)));

// A service that knows its public URL, whose port has to be known before.
async function serveBase() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${server.address().port}`;
  await new Promise((resolve) => server.close(resolve));
  return serve('--base-url', `http://${host}/v1`, '--listen', host);
}

test('Octokit follows the links of a service that knows its public URL', async (t) => {
  // Another program may have got the port meanwhile.
  const service = await serveBase().catch(serveBase);
  const baseUrl = `${service.url}/v1`;
  t.after(() => service.stop());
  const headers = { authorization: `Bearer ${KEY}` };
  for (let count = 0; count < 5; count += 1) {
    const body = JSON.stringify({ name: 'Rex', categoryId: 1 });
    const json = { ...headers, 'Content-Type': 'application/json' };
    assert.equal((await fetch(`${baseUrl}/pets`, { method: 'POST', headers: json, body })).status, 201);
  }
  const [{ Octokit }, { paginateRest }] = [await load('@octokit/core'), await load('@octokit/plugin-paginate-rest')];
  const pets = await new (Octokit.plugin(paginateRest))({ baseUrl }).paginate('GET /pets', { limit: 2, headers });
  assert.deepEqual(
    pets.map(({ id }) => id),
    [1, 2, 3, 4, 5],
  );
});
