// One domain of the list: made once, and brought up to date in place.
import { copyButton, element } from './elements.js';
import { ask, menuButton } from './settings-dialogs.js';
import { announce, busy, complain, setWorking, show, time } from './settings-parts.js';

// What was looked for and not found, which waiting may mend.
const NOT_FOUND_YET = 'not_found_yet';
// How soon a look may be over that was just begun.
const SOON_MS = 500;

let cards = 0;

export class DomainCard {
  // `page` has `call(method, path, body)`, `refresh()`, `refreshSoon(milliseconds)` and `removed(card)`.
  constructor(domain, page) {
    const { name, displayName } = domain;
    const id = `domain-${(cards += 1)}`;
    this.page = page;
    this.name = name;
    this.path = `domains/${encodeURIComponent(name)}`;
    this.isAwaited = false;
    // Whether somebody opened or closed the details of a domain that needs nothing.
    this.wanted = null;

    const ascii = displayName === name ? [] : [' ', element('span', { class: 'ascii' }, name)];
    this.heading = element('h3', { id, tabindex: '-1' }, element('bdi', {}, displayName), ...ascii);
    this.primary = element('span', { class: 'badge', hidden: '' }, 'primary');
    this.state = element('span', { class: 'words' });
    this.toggle = element('button', { type: 'button', class: 'toggle', 'aria-controls': `${id}-details` });
    this.toggle.append(element('span', { class: 'unseen' }, `Details of ${displayName}`));
    this.toggle.addEventListener('click', () => this.expand((this.wanted = this.details.hidden)));
    this.times = element('p', { class: 'soft' });
    this.message = element('p', { class: 'message' });
    this.leads = element('p', { class: 'soft' });
    this.problem = element('p', { class: 'problem', role: 'alert', hidden: '' });
    this.record = element('div', { class: 'record', role: 'group', 'aria-labelledby': `${id}-record`, tabindex: '-1' });
    this.verify = this.button('Verify', id, () => this.look());
    this.makePrimary = this.button('Make primary', id, () => this.putFirst());
    this.visit = visitLink(name);

    const state = element('p', { class: 'state' }, element('span', { class: 'mark', 'aria-hidden': 'true' }), this.state);
    const actions = element('div', { class: 'actions' }, this.verify, this.makePrimary, this.visit);
    const parts = [this.times, this.message, this.record, this.problem, actions];
    this.details = element('div', { id: `${id}-details` }, ...parts);
    const remove = menuButton(`More for ${displayName}`, `${id}-menu`, [['Remove…', () => this.askToRemove()]]);
    this.node = element(
      'li',
      { class: 'card', 'aria-labelledby': id },
      element('div', { class: 'head' }, element('div', { class: 'name' }, this.heading, this.primary, state), this.toggle, remove),
      this.leads,
      this.details,
    );
  }

  expand(isOpen) {
    this.details.hidden = !isOpen;
    this.toggle.setAttribute('aria-expanded', String(isOpen));
    this.node.classList.toggle('closed', !isOpen);
  }

  update(domain, redirects) {
    const { name, state, stateText, message, reason, isPrimary, record } = domain;
    const isRecordWrong = state === 'pending_dns' || state === 'dns_changed';
    const leads = redirects.find(({ from }) => from === name);
    const wasState = this.domain?.state;
    this.domain = domain;
    this.redirects = redirects;

    this.node.dataset.state = state;
    this.node.dataset.reason = reason ?? '';
    this.primary.hidden = !isPrimary;
    show(this.state, stateText);
    show(this.times, [domain.since, domain.checkedAt], ([since, checked]) => [
      'Since ',
      time(since),
      ...(checked ? ['; last checked ', time(checked)] : ['']),
    ]);
    show(this.message, message);
    show(this.leads, leads && `Redirects to ${leads.to} (${leads.status}).`);
    show(this.record, record, () => recordTable(record, this.record.getAttribute('aria-labelledby')));
    // Without a platform there is nothing that it could lead to.
    this.record.hidden = !isRecordWrong || !record.value;
    this.record.lastChild.hidden = reason === NOT_FOUND_YET;
    this.makePrimary.hidden = isPrimary || state === 'pending_dns' || Boolean(leads);
    this.visit.hidden = isRecordWrong;
    show(this.verify, domain.isChecking ? 'Verifying…' : state === 'pending_dns' ? 'Verify' : 'Re-verify');
    setWorking(this.verify, domain.isChecking);
    this.verify.classList.toggle('main', isRecordWrong || state === 'certificate_delayed');

    // A domain that needs nothing is one line, unless somebody opened it or works in it.
    const isCalm = state === 'active' && !message;
    if (!isCalm) this.wanted = null;
    this.toggle.hidden = !isCalm;
    this.expand(!isCalm || (this.wanted ?? this.details.contains(document.activeElement)));

    const isOver = this.isAwaited && !domain.isChecking;
    if (isOver || (wasState && wasState !== state)) {
      this.isAwaited &&= !isOver;
      announce(`${domain.displayName}: ${stateText}. ${message ?? ''}`);
    }
  }

  button(text, id, run) {
    const button = element('button', { type: 'button', 'aria-describedby': id }, text);
    button.addEventListener('click', () =>
      busy(button, async () => {
        complain(this.problem, null);
        try {
          await run();
        } catch (failure) {
          complain(this.problem, failure);
        }
      }),
    );
    return button;
  }

  async look() {
    await this.page.call('POST', `${this.path}/verify`);
    announce(`Verifying ${this.domain.displayName}`);
    this.isAwaited = true;
    await this.page.refresh();
    // Also if no check is under way any more: what was read may be older than its end.
    this.page.refreshSoon(SOON_MS);
  }

  async putFirst() {
    await this.page.call('POST', `${this.path}/primary`);
    await this.page.refresh();
    announce(`${this.domain.displayName} is primary`);
  }

  askToRemove() {
    const { name, displayName, isPrimary } = this.domain;
    const lost = this.redirects.filter(({ from, to }) => from === name || to === name);
    const consequence = [
      'It stops working immediately, unless it is the host of the service’s base URL.',
      isPrimary && 'The next domain that verifies becomes primary.',
      lost.length && `This also removes ${lost.map(({ from, to }) => `the redirect from ${from} to ${to}`).join(', ')}.`,
    ];
    ask(`Remove ${displayName}?`, consequence.filter(Boolean).join(' '), async (close) => {
      const { wasPrimary } = await this.page.call('DELETE', this.path);
      close();
      this.page.removed(this, wasPrimary && 'There is no primary domain now');
      await this.page.refresh();
    });
  }
}

// The record to create. Each value has a button that copies it.
function recordTable(record, id) {
  const caption = element('caption', { id }, 'Create this record in the DNS settings of ', element('strong', {}, record.zone));
  return [
    valueTable(caption, [record]),
    ...(record.remark ? [element('p', { class: 'note' }, record.remark)] : []),
    element('p', { class: 'soft' }, 'DNS changes can take up to 48 hours to become visible everywhere.'),
  ];
}

const COLUMNS = { Type: 'type', Name: 'name', Value: 'value', TTL: 'ttl' };

// The roles are named because a phone shows each row as a block, and browsers then drop the roles that are implied.
function valueTable(caption, records) {
  const heads = Object.keys(COLUMNS).map((head) => element('th', { scope: 'col', role: 'columnheader' }, head));
  const cell = (record, head) => {
    const value = element('code', {}, String(record[COLUMNS[head]]));
    // A type is chosen from a list, and cannot be pasted.
    const copy = head === 'Type' ? [] : [copyButton(records.length > 1 ? `${head} for ${record.value}` : head, value, announce)];
    return element('td', { role: 'cell', 'data-head': head }, value, ...copy);
  };
  const row = (record) => element('tr', { role: 'row' }, ...Object.keys(COLUMNS).map((head) => cell(record, head)));
  const head = element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads));
  return element('table', { role: 'table' }, caption, head, element('tbody', { role: 'rowgroup' }, ...records.map(row)));
}

function visitLink(name) {
  const about = element('span', { class: 'unseen' }, ` ${name} in a new tab`);
  return element('a', { href: `https://${name}/`, target: '_blank', rel: 'noopener noreferrer' }, 'Open', about);
}
