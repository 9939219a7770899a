'use strict';
// The reference: one field for the key, and a form for each operation.

const key = document.getElementById('key');
const show = document.getElementById('key-show');
const server = document.getElementById('server');
const announcement = document.getElementById('announcement');
const forms = [...document.querySelectorAll('form.try')].map(enliven);

// As people paste it from an example. The key stands in the field, and nowhere else.
const secret = () => key.value.trim().replace(/^Bearer\s+/i, '');

for (const part of document.querySelectorAll('section.key, form.try')) part.hidden = false;
document.getElementById('key-form').addEventListener('submit', (event) => event.preventDefault());
key.addEventListener('input', update);
show.addEventListener('click', () => {
  const isShown = key.type === 'text';
  key.type = isShown ? 'password' : 'text';
  show.textContent = isShown ? 'Show' : 'Hide';
  show.setAttribute('aria-pressed', String(!isShown));
  update();
});
function update() {
  for (const form of forms) form.update();
}
update();

// Makes a form send its request, and show what comes back.
function enliven(form) {
  const part = (name) => form.querySelector(name);
  const [note, result, status, returned, content, fields, curl] =
    ['.note', '.result', '.status', '.returned', '.content', '.fields', '.curl'].map(part);
  let sent;
  let isWaiting = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (isWaiting) return;
    isWaiting = true;
    announcement.textContent = '';
    status.textContent = 'Waiting for the response…';
    content.textContent = fields.textContent = '';
    sent = read(form);
    result.hidden = false;
    updateForm();
    try {
      const { url, method, headers, body, token } = sent;
      const credential = token ? { Authorization: `Bearer ${token}` } : {};
      const response = await fetch(url, {
        method,
        body,
        headers: { ...headers, ...credential },
        credentials: 'omit',
        cache: 'no-store',
      });
      const text = await response.text();
      status.textContent = `${response.status} ${response.statusText}`;
      fields.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
      content.textContent = /\bjson\b/.test(response.headers.get('Content-Type')) ? layOut(text) : text;
      announcement.textContent = `Response ${response.status}`;
    } catch (error) {
      status.textContent = `No response: ${error.message}`;
      announcement.textContent = 'No response';
    }
    returned.hidden = content.textContent === '';
    isWaiting = false;
  });
  function updateForm() {
    note.textContent = secret() ? '' : 'No API key: enter one above, or this returns 401.';
    if (sent) curl.textContent = command(sent, key.type === 'text');
  }
  return { update: updateForm };
}

// The request that a form describes.
function read(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  let body;
  for (const { name, value, dataset } of form.querySelectorAll('[data-in]')) {
    if (dataset.in === 'body') {
      body = value;
      headers['Content-Type'] = 'application/json';
    } else if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value !== '' && dataset.in === 'query') query.append(name, value);
    else if (value !== '') headers[name] = value;
  }
  const url = new URL(server.value + path + (query.size ? `?${query}` : ''), location.href).href;
  return { url, method: form.dataset.method, headers, body, token: secret() };
}

// The request for a shell.
function command({ url, method, headers, body, token }, isShown) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const words = [`curl -i ${method === 'GET' ? '' : `-X ${method} `}${quote(url)}`];
  // Hidden, it is the variable that the code samples take it from.
  if (token) words.push(`-H ${isShown ? quote(`Authorization: Bearer ${token}`) : '"Authorization: Bearer $KEY"'}`);
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quote(`${name}: ${value}`)}`);
  if (body !== undefined) words.push(`--data-raw ${quote(body)}`);
  return words.join(' \\\n  ');
}

// JSON in lines. It keeps each number to the letter: JSON.parse would round an int64.
function layOut(json) {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const line = (change) => `\n${'  '.repeat((depth += change))}`;
  const lay = (token, before, after) => {
    if ('{['.includes(token)) return '}]'.includes(after) ? token : token + line(1);
    if ('}]'.includes(token)) return '{['.includes(before) ? token : line(-1) + token;
    if (token === ',') return token + line(0);
    return token === ':' ? ': ' : token;
  };
  return tokens.map((token, i) => lay(token, tokens[i - 1] ?? ' ', tokens[i + 1] ?? ' ')).join('');
}
