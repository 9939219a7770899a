'use strict';
// Code on the pages: a button that copies each block, and one language for all samples, which the browser remembers.
(() => {
  const make = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const status = make('p', { class: 'unseen', role: 'status' });
  document.body.append(status);

  // Puts the text into the clipboard. A page without HTTPS has no clipboard of its own: there it selects the text.
  async function copy(block) {
    try {
      await navigator.clipboard.writeText(block.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(block);
      return document.execCommand('copy');
    }
  }

  for (const block of document.querySelectorAll('pre')) {
    const word = make('span', {}, 'Copy');
    const button = make('button', { type: 'button', class: 'copy' }, word, make('span', { class: 'unseen' }, ' code'));
    let timer;
    button.addEventListener('click', async () => {
      const isCopied = await copy(block);
      word.textContent = isCopied ? 'Copied' : 'Selected';
      status.textContent = isCopied ? 'Copied' : 'The code is selected; copy it with the keyboard';
      clearTimeout(timer);
      timer = setTimeout(() => {
        word.textContent = 'Copy';
        status.textContent = '';
      }, 2_000);
    });
    const frame = make('div', { class: 'code' });
    block.replaceWith(frame);
    frame.append(block, button);
  }

  // A browser may forbid a page to remember anything.
  const LANGUAGE = 'language';
  const remembered = () => {
    try {
      return localStorage.getItem(LANGUAGE);
    } catch {
      return null;
    }
  };
  const remember = (language) => {
    try {
      localStorage.setItem(LANGUAGE, language);
    } catch {
      // It holds for this page.
    }
  };

  const figures = [...document.querySelectorAll('.samples figure')];
  const languages = [...new Set(figures.map((figure) => figure.dataset.language))];
  const buttons = [];
  const choose = (language) => {
    for (const figure of figures) figure.hidden = figure.dataset.language !== language;
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.textContent === language));
  };
  for (const samples of document.querySelectorAll('.samples')) {
    const group = make('div', { class: 'languages', role: 'group', 'aria-label': 'Language' });
    for (const language of languages) {
      const button = make('button', { type: 'button' }, language);
      button.addEventListener('click', () => {
        // What is clicked stays where it is, however tall the samples above it have become.
        const top = button.getBoundingClientRect().top;
        choose(language);
        scrollBy({ top: button.getBoundingClientRect().top - top, behavior: 'instant' });
        remember(language);
      });
      buttons.push(button);
      group.append(button);
    }
    samples.prepend(group);
    samples.classList.add('chosen');
  }
  const language = remembered();
  choose(languages.includes(language) ? language : languages[0]);
})();
