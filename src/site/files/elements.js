// The parts that the scripts of all pages make: elements, and buttons that copy.

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
