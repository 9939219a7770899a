// The menu next to a domain, and the question before something is removed.
import { element } from './elements.js';
import { busy, complain, isBusy, show } from './settings-parts.js';

// A menu button (WAI-ARIA Authoring Practices, 'Menu Button'). `items` has a label, what it does, and perhaps a class for
// each item. Returns also the items, each of which may be hidden.
export function menuButton(label, id, items) {
  const dots = element('span', { 'aria-hidden': 'true' }, '⋯');
  const button = element(
    'button',
    { type: 'button', class: 'dots', 'aria-label': label, 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-controls': id },
    dots,
  );
  const entries = items.map(([text, act, style = '']) => {
    const entry = element('li', { role: 'menuitem', tabindex: '-1', class: style }, text);
    entry.addEventListener('click', () => {
      close();
      button.focus();
      act();
    });
    return entry;
  });
  const menu = element('ul', { id, role: 'menu', 'aria-label': label, hidden: '' }, ...entries);
  const usable = () => entries.filter((entry) => !entry.hidden);
  const node = element('div', { class: 'menu' }, button, menu);

  const open = (at) => {
    menu.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    usable().at(at).focus();
  };
  const close = () => {
    menu.hidden = true;
    button.setAttribute('aria-expanded', 'false');
  };
  button.addEventListener('click', () => (menu.hidden ? open(0) : close()));
  node.addEventListener('keydown', (event) => {
    const all = usable();
    const at = all.indexOf(document.activeElement);
    const steps = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 };
    if (event.key in steps && (at >= 0 || event.key.startsWith('Arrow'))) {
      open(steps[event.key] % all.length);
    } else if (at >= 0 && (event.key === 'Enter' || event.key === ' ')) {
      all[at].click();
    } else if (event.key === 'Escape' && !menu.hidden) {
      close();
      button.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  node.addEventListener('focusout', (event) => {
    if (!node.contains(event.relatedTarget)) close();
  });
  return { node, entries };
}

const [question, title, text, problem, yes, no] = ['', '-title', '-text', '-problem', '-yes', '-no'].map((part) =>
  document.getElementById(`question${part}`),
);
let answer = null;

// Asks once, then acts. If that fails, the dialog stays and shows the reason. It gives the focus back when it closes.
export function ask(asked, consequence, act) {
  show(title, asked);
  show(text, consequence);
  complain(problem, null);
  answer = act;
  question.showModal();
}

// Withdraws the question.
export const withdraw = () => question.close();

no.addEventListener('click', () => isBusy(yes) || question.close());
question.addEventListener('cancel', (event) => isBusy(yes) && event.preventDefault());
yes.addEventListener('click', () =>
  busy(yes, async () => {
    complain(problem, null);
    try {
      await answer(() => question.close());
    } catch (failure) {
      complain(problem, failure);
    }
  }),
);
