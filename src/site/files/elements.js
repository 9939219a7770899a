// Shared by the scripts of all pages: elements, buttons that copy, and the API key in pasted text.

// An element with attributes, and with children that are elements or text.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A button that copies the text of an element. `announce` is for readers who do not see it.
export function copyButton(what, source, announce) {
  const word = element('span', {}, 'Copy');
  const button = element('button', { type: 'button', class: 'copy', title: 'Copy' }, word, ` ${what}`);
  let timer;
  button.addEventListener('click', async () => {
    const isCopied = await copy(source);
    word.textContent = isCopied ? 'Copied' : 'Selected';
    button.classList.toggle('done', isCopied);
    const copied = source.localName === 'pre' ? what : source.textContent;
    announce(isCopied ? `Copied ${copied}` : `${what} is selected; copy it with the keyboard`);
    clearTimeout(timer);
    timer = setTimeout(() => {
      word.textContent = 'Copy';
      button.classList.remove('done');
    }, 2_000);
  });
  return button;
}

// A page that is neither local nor encrypted has no clipboard of its own: there, the text is selected and copied from the
// page.
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return document.execCommand('copy');
  }
}

// The API key alone, from text that people copy from an example, a shell, a program or a header field.
export function bare(text) {
  const { quoted, word } = /(["'`])(?:authorization:\s*)?bearer\s+(?<quoted>\S+?)\1|\bbearer\s+(?<word>\S+)/i.exec(text)?.groups ?? {};
  if (quoted ?? word) return quoted ?? word;
  return text
    .trim()
    .replace(/^-H\s+/, '')
    .replace(/^(["'])(.*)\1$/, '$2')
    .replace(/^(?:export\s+\w+|(?:PETSTORE_)?(?:API_)?KEY)\s*=\s*/, '')
    .replace(/^(?:authorization|x-api-key):\s*/i, '')
    .replace(/^(["'])(.*)\1;?$/, '$2');
}
