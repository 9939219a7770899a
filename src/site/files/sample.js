// The code samples of a request, as samples.rs makes them from the example.
import { coloured, layOut } from './colours.js';

// Writes the samples of an operation again. `request` is the one that its form describes; if `isEmpty`, the response to a success
// has no body.
export function writeSamples(figures, request) {
  for (const figure of figures) {
    const code = figure.querySelector('code');
    const text = LANGUAGES[figure.dataset.language]({ ...request, headers: Object.entries(request.headers) });
    if (code.textContent !== text) code.replaceChildren(...coloured(text));
  }
}

const LANGUAGES = { curl, JavaScript: javaScript, Python: python };
// Empty, it is one that the code makes.
const ONCE = 'Idempotency-Key';

export function curl({ url, method, headers, body, token, isShown }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  // curl sends a body with POST.
  const isUsual = method === (body === undefined ? 'GET' : 'POST');
  const lines = [
    `curl ${isUsual ? '' : `-X ${method} `}${quote(url)}`,
    // Hidden, the key is the variable that every sample takes it from.
    `-H ${isShown ? quote(`Authorization: Bearer ${token}`) : '"Authorization: Bearer $KEY"'}`,
  ];
  for (const [name, value] of headers) {
    const isMissing = name === ONCE && value === '';
    lines.push(`-H ${isMissing ? `"${name}: $(openssl rand -hex 16)"` : quote(`${name}: ${value}`)}`);
  }
  // What follows an @ would be the name of a file.
  if (body !== undefined) lines.push(`${body.startsWith('@') ? '--data-raw' : '-d'} ${quote(plain(body, 0) ?? body)}`);
  return lines.join(' \\\n    ');
}

function javaScript({ url, method, headers, body, isEmpty, token, isShown }) {
  const field = ([name, value]) =>
    `\n    '${name}': ${name === ONCE && value === '' ? 'crypto.randomUUID()' : quoted(value, "'")},`;
  const literal = body !== undefined && plain(body, 2);
  const content = literal ? `JSON.stringify(${literal.replaceAll('\n', '\n  ')})` : quoted(body ?? '', "'");
  return [
    `// Node.js 20 or later, in a module such as sample.mjs`,
    `const response = await fetch(${quoted(url, "'")}, {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    `  headers: {\n    'Authorization': ${isShown ? quoted(`Bearer ${token}`, "'") : '`Bearer ${process.env.KEY}`'},${headers.map(field).join('')}\n  },`,
    ...(body === undefined ? [] : [`  body: ${content},`]),
    '});',
    `const result = ${isEmpty ? 'response.ok ? null : ' : ''}await response.json();`,
    'if (!response.ok) throw new Error(`${result.code}: ${result.message}`);',
    `console.log(${isEmpty ? 'response.status' : 'result'});`,
  ].join('\n');
}

function python({ url, method, headers, body, isEmpty, token, isShown }) {
  const isMissing = ([name, value]) => name === ONCE && value === '';
  const literal = body !== undefined && plain(body, 4);
  // Python has other words for these.
  const isOwn = literal && !/\b(?:true|false|null)\b/.test(literal);
  // Requests itself adds the type of JSON.
  const own = headers.filter(([name, value]) => !(isOwn && name === 'Content-Type' && value === 'application/json'));
  const field = (header) => `\n        "${header[0]}": ${isMissing(header) ? 'str(uuid.uuid4())' : quoted(header[1], '"')},`;
  const content = isOwn ? `json=${literal.replaceAll('\n', '\n    ')}` : `data=${quoted(body ?? '', '"')}.encode()`;
  return [
    `${isShown ? '' : 'import os\n'}${headers.some(isMissing) ? 'import uuid\n' : ''}\nimport requests\n`.trimStart(),
    `response = requests.${method.toLowerCase()}(`,
    `    ${quoted(url, '"')},`,
    `    headers={\n        "Authorization": ${isShown ? quoted(`Bearer ${token}`, '"') : `f"Bearer {os.environ['KEY']}"`},${own.map(field).join('')}\n    },`,
    ...(body === undefined ? [] : [`    ${content},`]),
    '    timeout=60,\n)',
    `result = response.json()${isEmpty ? ' if not response.ok else None' : ''}`,
    'if not response.ok:',
    `    raise SystemExit(f"{result['code']}: {result['message']}")`,
    `print(${isEmpty ? 'response.status_code' : 'result'})`,
  ].join('\n');
}

// A string of JavaScript or Python in these quotes, unless it needs others.
const quoted = (text, quote) => {
  const json = JSON.stringify(text);
  return json === `"${text}"` && !text.includes(quote) ? quote + text + quote : json;
};

// JSON with this indentation; nothing if JSON.parse would change it.
function plain(json, indent) {
  try {
    const value = JSON.parse(json);
    return layOut(json) === JSON.stringify(value, null, 2) ? JSON.stringify(value, null, indent) : null;
  } catch {
    return null;
  }
}
