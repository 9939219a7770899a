// Code on the pages: its colours, a button that copies each block to run, and one language for all samples, which the browser
// remembers.
import { copyButton, element } from './elements.js';

const status = element('p', { class: 'unseen', role: 'status' });
document.body.append(status);

const announce = (text) => (status.textContent = text);
for (const block of document.querySelectorAll('pre:not(.wrap, .fields)')) {
  const frame = element('div', { class: 'code' });
  block.replaceWith(frame);
  frame.append(block, copyButton('code', block, announce));
}

// A browser may forbid a page to remember anything: the choice then holds for this page.
const remember = (language) => {
  try {
    localStorage.setItem('language', language);
  } catch {}
};

const figures = [...document.querySelectorAll('.samples figure')];
const languages = [...new Set(figures.map((figure) => figure.dataset.language))];
const buttons = [];
const choose = (language) => {
  for (const figure of figures) figure.hidden = figure.dataset.language !== language;
  for (const button of buttons) button.setAttribute('aria-pressed', String(button.textContent === language));
};
for (const samples of document.querySelectorAll('.samples')) {
  const group = element('div', { class: 'languages', role: 'group', 'aria-label': 'Language' });
  for (const language of languages) {
    const button = element('button', { type: 'button' }, language);
    button.addEventListener('click', () => {
      // The button stays in its place, whatever the height of the samples above it.
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
// The sample that `frame.js` has shown before the first paint.
const shown = figures.find((figure) => !figure.hidden);
if (shown) choose(shown.dataset.language);

// Last: colours move nothing, and the work above must be done before the first paint.
const { coloured } = await import('./colours.js');
for (const code of document.querySelectorAll('pre:not(.plain) code')) code.replaceChildren(...coloured(code.textContent));
