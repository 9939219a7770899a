'use strict';
// The frame of the pages: it opens the target of a link, keeps the place in the side bar, and marks the section in view.
(() => {
  const target = () => document.getElementById(location.hash.slice(1));

  let language;
  try {
    language = localStorage.getItem('language');
  } catch {}

  // Tasks before the first paint. An element `at-once` does its task as soon as the parser has reached it.
  const tasks = {
    keepPlace() {
      const side = document.querySelector('.side');
      const entry = side.querySelector('[aria-current]');
      // A browser may forbid storage: then the side bar starts at its top.
      try {
        side.scrollTop = sessionStorage.getItem('side');
        addEventListener('pagehide', () => sessionStorage.setItem('side', side.scrollTop));
      } catch {}
      if (entry && !isWithin(entry, side)) side.scrollTop += entry.getBoundingClientRect().top - side.clientHeight / 2;
    },
    // Opens the part before its content has been read, in case the browser paints halfway.
    open(task) {
      const part = task.parentElement;
      if (`${location.hash.slice(1)}-`.startsWith(`${part.id}-`)) part.open = true;
    },
    // The key is one line on the page of pets as long as the tab or the device has one.
    fold() {
      try {
        const isFolded = Boolean(sessionStorage.getItem('key') ?? localStorage.getItem('key'));
        document.querySelector('.key').classList.toggle('folded', isFolded);
        document.getElementById('key-line').hidden = !isFolded;
      } catch {}
    },
    // The samples are in the language that the reader has chosen, or in the first one.
    choose(task) {
      const figures = [...task.parentElement.querySelectorAll('figure')];
      const shown = figures.find(({ dataset }) => dataset.language === language) ?? figures[0];
      for (const figure of figures) figure.hidden = figure !== shown;
    },
    // Requests go to the server of this page, the last one, if it is on this machine or named as another; otherwise to the first.
    server(task) {
      const [select, line] = ['server', 'sends'].map((id) => document.getElementById(id));
      const at = (option) => new URL(option.value, location);
      const own = [...select.options].filter((option) => at(option).origin === location.origin);
      const isNamed = own.length > 1;
      if (isNamed) own.pop().remove();
      if (isNamed || isLocal(location.hostname)) own[0].selected = true;
      select.parentElement.hidden = select.length < 2;
      const show = () => {
        const { href, origin } = at(select);
        const isOwn = origin === location.origin;
        line.textContent = `Requests go to ${href}${isOwn ? '.' : `, not to this server, ${location.host}.`}`;
        line.classList.toggle('elsewhere', !isOwn);
      };
      select.addEventListener('change', show);
      show();
    },
  };
  customElements.define(
    'at-once',
    class extends HTMLElement {
      connectedCallback() {
        tasks[this.getAttribute('task')](this);
      }
    },
  );

  function isLocal(host) {
    return /^(?:(?:.+\.)?localhost|127\.[\d.]+|\[::1\])$/.test(host);
  }

  function isWithin(part, whole) {
    const [inner, outer] = [part, whole].map((element) => element.getBoundingClientRect());
    return inner.top >= outer.top && inner.bottom <= outer.bottom;
  }

  // Opens the element that the address names, and all elements around it.
  function openLinked() {
    for (let part = target(); part; part = part.parentElement) if (part.localName === 'details') part.open = true;
  }
  addEventListener('hashchange', () => {
    openLinked();
    target()?.scrollIntoView();
  });

  // Writes the operation that was opened last into the address, and brings the button that sends its request into view.
  function follow(operation) {
    const isWithin = operation.contains(target());
    if (!operation.open && isWithin) history.replaceState(null, '', location.pathname);
    if (!operation.open || (isWithin && target() !== operation)) return;
    history.replaceState(null, '', `#${operation.id}`);
    if (operation.querySelector('.send')?.getBoundingClientRect().bottom > innerHeight) operation.scrollIntoView();
  }

  // The last of the headings above the upper third of the window, or the one that is linked to, if it is there too; at the
  // end of the page, the one that is linked to.
  function mark(links) {
    const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const above = links.filter(([, part]) => part.getBoundingClientRect().top <= innerHeight / 3);
    const linked = links.find(([, part]) => part.contains(target()));
    const isInView = linked && linked[1].getBoundingClientRect().top >= 0;
    const [current] = (isInView && (isEnd || above.includes(linked)) && linked) || (isEnd && links.at(-1)) || above.at(-1) || [];
    for (const [link] of links) {
      if (link === current) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }

  document.addEventListener('DOMContentLoaded', () => {
    const operations = [...document.querySelectorAll('details.operation')];
    for (const operation of operations) operation.addEventListener('toggle', () => follow(operation));

    // The links of the side bar and of the contents that lead into this page.
    const links = [...document.querySelectorAll('.side li li a, .contents a')].flatMap((link) => {
      const part = link.pathname === location.pathname && document.getElementById(link.hash.slice(1));
      return part ? [[link, part]] : [];
    });
    const show = () => mark(links);
    for (const event of ['scroll', 'resize', 'hashchange']) addEventListener(event, show, { passive: true });
    show();

    const menu = document.querySelector('.menu');
    if (!menu) return;
    const close = () => (menu.open = false);
    document.querySelector('.side').addEventListener('click', (event) => event.target.closest('a') && close());
    document.addEventListener('keydown', (event) => event.key === 'Escape' && close());
  });
})();
