// Code in colours, without a browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const files = join(import.meta.dirname, '..', '..', 'src', 'site', 'files');
const source = (await readFile(join(files, 'colours.js'), 'utf8')).replace(/import .*;/, 'const element = (_, { class: kind }, ...parts) => ({ kind, parts });');
const { coloured } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const text = (part) => (part.kind ? `<${part.kind}>${part.parts.map(text).join('')}</>` : part);

test('tokens have classes and text stays as it is', () => {
  for (const [code, expected] of [
    ['{"id": 7, "to": -7, "ok": true}', '{<k>"id"</>: <n>7</>, <k>"to"</>: <n>-7</>, <k>"ok"</>: <n>true</>}'],
    ['curl -H "Bearer $KEY" # a', 'curl <k>-H</> <s>"Bearer <v>$KEY</>"</> <c># a</>'],
    [`-d '{"a":"it'\\''s"}' /for/7`, `<k>-d</> <s>'{"a":"it'</>\\'<s>'s"}'</> /for/7`],
    ['Location: /v1/pets/7\nDate: 9', '<k>Location</>: /v1/pets/7\n<k>Date</>: <n>9</>'],
    ['const a = `${b}$`; // c', '<k>const</> a = <s>`<v>${b}</>$`</>; <c>// c</>'],
    ['f"{a}" is-for format', 'f<s>"{a}"</> is-for format'],
    [`it doesn't $ "end`, `it doesn't $ "end`],
    ['http://10.0.0.1:80 2026-11-25T10:00Z.', 'http://10.0.0.1:80 <n>2026-11-25T10:00Z</>.'],
    [`<b> & '<i>'`, `<b> & <s>'<i>'</>`],
  ])
    assert.equal(coloured(code).map(text).join(''), expected, code);
});
