// A client that openapi-typescript makes of the interface description: it compiles, and calls each operation.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { KEY, ROOT, serve, TARGET } from './harness.mjs';

test('a client in TypeScript compiles, and calls each operation', async (t) => {
  const service = await serve();
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
  const { pet, pets, fetched, codes } = await callEach(`${service.url}/v1`, KEY, name);
  assert.deepEqual(pet, { id: pet?.id, name, categoryId: 3, status: 'sold' });
  assert.deepEqual([pets, fetched], [[pet], pet]);
  assert.deepEqual(codes, ['not_found', 'not_implemented', 'unauthorized']);
});
