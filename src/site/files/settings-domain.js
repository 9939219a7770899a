// One domain of the list: made once, and brought up to date in place.
import { copyButton, element } from './elements.js';
import { ask, menuButton } from './settings-dialogs.js';
import { announce, busy, complain, dotted, setWorking, show, time, until } from './settings-parts.js';

// Findings that may pass if one waits.
const NOT_FOUND_YET = 'not_found_yet';
// The reasons of a domain that waits for DNS; with any other its record is wrong.
const WAITS = [undefined, null, NOT_FOUND_YET, 'dns_unavailable'];
// How soon a check that has just begun may be done.
const SOON_MS = 500;

let cards = 0;

// How a state looks: waiting, wrong or live.
export function lookOf({ state, reason }) {
  if (state === 'active') return 'live';
  return state === 'verified' || (state === 'pending_dns' && WAITS.includes(reason)) ? 'waiting' : 'wrong';
}

export class DomainCard {
  // `page` has `call(method, path, body)`, `open(card)`, `refresh()`, `refreshSoon(milliseconds)` and `removed(card)`.
  constructor(domain, page) {
    const { name, displayName } = domain;
    const id = `domain-${(cards += 1)}`;
    this.page = page;
    this.name = name;
    this.path = `domains/${encodeURIComponent(name)}`;
    this.isAwaited = false;

    const ascii = displayName === name ? [] : [' ', element('span', { class: 'ascii' }, ...dotted(name))];
    this.toggle = element('button', { type: 'button', class: 'toggle', 'aria-controls': `${id}-details` });
    this.toggle.append(element('span', {}, element('bdi', {}, ...dotted(displayName)), ...ascii));
    this.toggle.addEventListener('click', () => page.open(this.details.hidden ? this : null));
    this.primary = element('span', { class: 'badge', hidden: '' }, 'Primary');
    this.state = element('span', { class: 'words' });
    const state = element('span', { class: 'state' }, element('span', { class: 'mark', 'aria-hidden': 'true' }), this.state);
    this.why = element('p', { class: 'why soft' });
    this.visit = visitLink(name);
    this.verify = this.button('Verify', id, () => this.look());
    const menu = menuButton(`More for ${displayName}`, `${id}-menu`, [
      ['Copy record', () => this.copyRecord()],
      ['Make primary', () => this.attempt(() => this.putFirst())],
      ['Remove…', () => this.askToRemove(), 'danger'],
    ]);
    [this.copy, this.makePrimary] = menu.entries;
    this.leads = element('p', { class: 'leads soft' });
    this.problem = element('p', { class: 'problem', role: 'alert', hidden: '' });
    this.rest = element('p', { class: 'rest' });
    this.times = element('p', { class: 'soft' });
    this.message = element('p', { class: 'message' });
    this.record = element('div', { class: 'record', role: 'group', 'aria-labelledby': `${id}-record`, tabindex: '-1' });
    this.details = element('div', { id: `${id}-details`, class: 'details' }, this.message, this.rest, this.record, this.times);
    this.node = element(
      'li',
      { class: 'card', 'aria-labelledby': id },
      element(
        'div',
        { class: 'head' },
        element('div', { class: 'name' }, element('h3', { id }, this.toggle), this.primary, state),
        element('div', { class: 'acts' }, this.visit, this.verify),
        menu.node,
        this.why,
        this.leads,
      ),
      this.problem,
      this.details,
    );
    this.expand(false);
  }

  expand(isOpen) {
    this.details.hidden = !isOpen;
    this.toggle.setAttribute('aria-expanded', String(isOpen));
    this.node.classList.toggle('closed', !isOpen);
  }

  update(domain, { redirects, platformHost, checkEvery }) {
    const { name, state, stateText, message, reason, isPrimary, record, checkedAt } = domain;
    const isRecordWrong = state === 'pending_dns' || state === 'dns_changed';
    const leads = redirects.find(({ from }) => from === name);
    const wasText = this.domain?.stateText;
    const [short, after] = stateText.split('; ');
    const rest = after && `${after[0].toUpperCase()}${after.slice(1)}.`;
    this.domain = domain;
    this.redirects = redirects;

    this.node.dataset.state = state;
    this.node.dataset.look = lookOf(domain);
    this.primary.hidden = !isPrimary;
    show(this.state, short);
    show(this.why, message ?? rest ?? (checkedAt ? '' : 'Not checked yet.'));
    show(this.leads, leads && `Redirects to ${leads.to} (${leads.status}).`);
    show(this.rest, rest);
    show(this.message, message);
    const next = platformHost && until(checkedAt, checkEvery);
    show(this.times, [domain.since, checkedAt, next], ([since]) => [
      'Since ',
      time(since),
      ...(checkedAt ? ['. Last checked ', time(checkedAt)] : []),
      ...(next ? [`. Checks again ${next}`] : []),
      '.',
    ]);
    show(this.record, { record, isRecordWrong }, () => recordTable(record, isRecordWrong, this.record.getAttribute('aria-labelledby')));
    // Without a platform, the record has no target.
    this.record.hidden = !record.value;
    this.copy.hidden = !record.value;
    const wait = this.record.querySelector('.wait');
    if (wait) wait.hidden = reason === NOT_FOUND_YET;
    this.makePrimary.hidden = isPrimary || state === 'pending_dns' || Boolean(leads);
    this.visit.hidden = isRecordWrong;
    show(this.verify, domain.isChecking ? 'Verifying…' : state === 'pending_dns' ? 'Verify' : 'Re-verify');
    setWorking(this.verify, domain.isChecking);

    const isOver = this.isAwaited && !domain.isChecking;
    if (isOver || (wasText && wasText !== stateText)) {
      this.isAwaited &&= !isOver;
      announce(`${domain.displayName}: ${stateText}. ${message ?? ''}`);
    }
  }

  button(text, id, run) {
    const button = element('button', { type: 'button', 'aria-describedby': id }, text);
    button.addEventListener('click', () => busy(button, () => this.attempt(run)));
    return button;
  }

  // Shows a failure in the card.
  async attempt(run) {
    complain(this.problem, null);
    try {
      await run();
    } catch (failure) {
      complain(this.problem, failure);
    }
  }

  async look() {
    await this.page.call('POST', `${this.path}/verify`);
    announce(`Verifying ${this.domain.displayName}`);
    this.isAwaited = true;
    await this.page.refresh();
    // Even if no check is under way: the state that was read may be older than its end.
    this.page.refreshSoon(SOON_MS);
  }

  async putFirst() {
    await this.page.call('POST', `${this.path}/primary`);
    await this.page.refresh();
    announce(`${this.domain.displayName} is primary`);
  }

  // As a zone file has it. A page that is neither local nor encrypted has no clipboard: there, the record is shown.
  async copyRecord() {
    const { type, value, ttl } = this.domain.record;
    const line = `${this.name}. ${ttl} IN ${type.split(' ')[0]} ${value}.`;
    try {
      await navigator.clipboard.writeText(line);
      announce(`Copied ${line}`);
    } catch {
      this.page.open(this);
      this.record.focus();
    }
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

// The record to create, or the one that exists. Each value has a button that copies it.
function recordTable(record, isRecordWrong, id) {
  const what = isRecordWrong ? 'Create this record in the DNS settings of ' : 'The record in the DNS settings of ';
  const table = valueTable(element('caption', { id }, what, element('strong', {}, ...dotted(record.zone))), record);
  if (!isRecordWrong) return [table];
  const remark = record.remark ? [element('p', { class: 'note' }, record.remark)] : [];
  return [table, ...remark, element('p', { class: 'wait soft' }, 'DNS changes can take up to 48 hours.')];
}

const COLUMNS = { Type: 'type', Name: 'name', Value: 'value', TTL: 'ttl' };

// The roles are named because a phone shows each row as a block, and browsers then drop the roles that are implied.
function valueTable(caption, record) {
  const heads = Object.keys(COLUMNS).map((head) => element('th', { scope: 'col', role: 'columnheader' }, head));
  const cells = Object.entries(COLUMNS).map(([head, of]) => {
    const value = element('code', {}, ...dotted(String(record[of])));
    // A type is chosen from a list, and cannot be pasted.
    return element('td', { role: 'cell', 'data-head': head }, value, ...(head === 'Type' ? [] : [copyButton(head, value, announce)]));
  });
  const row = (...of) => element('tr', { role: 'row' }, ...of);
  const [head, body] = [element('thead', { role: 'rowgroup' }, row(...heads)), element('tbody', { role: 'rowgroup' }, row(...cells))];
  return element('table', { role: 'table' }, caption, head, body);
}

function visitLink(name) {
  const about = element('span', { class: 'unseen' }, ` ${name} in a new tab`);
  return element('a', { href: `https://${name}/`, target: '_blank', rel: 'noopener noreferrer' }, 'Open', about);
}
