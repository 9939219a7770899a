// The address that a first start prints ends with the key. Here, before anything else is loaded, the key leaves the address
// and the history of the tab; key.js takes it.
(() => {
  const take = () => {
    const [, key] = /^#key=(.+)/.exec(location.hash) ?? [];
    if (!key) return;
    globalThis.arrivedKey = key;
    history.replaceState(null, '', location.pathname + location.search);
  };
  take();
  addEventListener('hashchange', take);
})();

// Light or dark: as the system has it, until a reader chooses the other. Loaded before anything is drawn, so that no page
// flashes in the wrong colours.
(() => {
  const root = document.documentElement;
  // Shows elements that need scripts from the first paint on.
  root.classList.add('js');
  const system = matchMedia('(prefers-color-scheme: dark)');
  // A browser may forbid storage; the choice then lasts as long as the page.
  let chosen = null;
  const read = () => {
    try {
      const kept = localStorage.getItem('theme');
      chosen = ['dark', 'light'].includes(kept) ? kept : null;
    } catch {}
  };
  const isDark = () => (chosen ? chosen === 'dark' : system.matches);
  const show = () => {
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    const button = document.getElementById('theme');
    if (!button) return;
    button.hidden = false;
    button.textContent = isDark() ? '☀' : '☾';
    button.title = isDark() ? 'Light colours' : 'Dark colours';
    button.setAttribute('aria-label', button.title);
  };
  const choose = () => {
    const next = isDark() ? 'light' : 'dark';
    const isOfSystem = (next === 'dark') === system.matches;
    chosen = isOfSystem ? null : next;
    try {
      if (chosen) localStorage.setItem('theme', chosen);
      else localStorage.removeItem('theme');
    } catch {}
    show();
  };
  read();
  show();
  system.addEventListener('change', show);
  // Another tab, or the way back to a page that the browser kept.
  for (const event of ['storage', 'pageshow'])
    addEventListener(event, () => {
      read();
      show();
    });
  document.addEventListener('DOMContentLoaded', () => {
    document.getElementById('theme').addEventListener('click', choose);
    show();
  });
})();
