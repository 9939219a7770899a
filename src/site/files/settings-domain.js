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

// For how long a sign that something was copied is seen.
const COPIED_MS = 2_000;

let cards = 0;

// A message as the page uses it: what was found, what to delete and why, and the records to create. The messages of
// src/site/project/verify.rs and caa.rs are made for this.
function parts(message) {
  const sentences = (message ?? '').split(/(?<=\.) (?=[A-Z])/);
  const found = [];
  const deletion = [];
  let isReason = false;
  for (const sentence of sentences) {
    const isDeletion = sentence.startsWith('Delete ');
    if (isDeletion || isReason) deletion.push(sentence);
    else if (!/^(Create|DNS changes) /.test(sentence)) found.push(sentence);
    isReason = sentence.startsWith('Delete this record') || sentence.startsWith('Delete these records');
  }
  const [, second = ''] = /or these records: (.*?)\.( |$)/.exec(message) ?? [];
  const addresses = [...second.matchAll(/\b(AAAA|A) ([0-9a-f.:]+)/g)].map(([, type, value]) => ({ type, value }));
  return { found: found.join(' '), deletion: deletion.join(' '), addresses };
}

// The same in one line of a row: only what was found.
function brief(message, name) {
  const [first] = message.split(/\.(?: |$)(?=[A-Z]|$)/);
  const short = first.replace(/^Delete \w+ records? of \S+: /, 'Has other records: ').replace(/^The (CNAME record of|record is correct, but the) /, '');
  const rest = short.startsWith(`${name} `) ? short.slice(name.length + 1) : short;
  return `${rest[0].toUpperCase()}${rest.slice(1)}.`;
}

// The CAA record that the message asks for; null if it asks for none.
function caaRecord(message, { zone, ttl }) {
  const [, owner, value] = /CAA records of (\S+) block.*add the record CAA (\d+ issue "[^"]+")/.exec(message) ?? [];
  if (!owner) return null;
  const name = owner === zone ? '@' : owner.endsWith(`.${zone}`) ? owner.slice(0, -zone.length - 1) : owner;
  return { type: 'CAA', name, value, ttl };
}

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
    this.copied = element('span', { class: 'badge copied', hidden: '' }, '✓ Copied');
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
    this.record = element('div', { class: 'record', role: 'group', 'aria-label': `DNS records of ${displayName}`, tabindex: '-1' });
    this.details = element('div', { id: `${id}-details`, class: 'details' }, this.message, this.rest, this.record, this.times);
    this.node = element(
      'li',
      { class: 'card', 'aria-labelledby': id },
      element(
        'div',
        { class: 'head' },
        element('div', { class: 'name' }, element('h3', { id }, this.toggle), this.primary, state, this.copied, this.why, this.leads),
        element('div', { class: 'acts' }, this.visit, this.verify),
        menu.node,
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
    const { found, deletion, addresses } = isRecordWrong ? parts(message) : { found: message, addresses: [] };
    const caa = message && caaRecord(message, record);
    show(this.why, message ? brief(message, name) : (rest ?? (checkedAt ? '' : 'Not checked yet.')));
    show(this.leads, leads && `Redirects to ${leads.to} (${leads.status}).`);
    show(this.rest, rest);
    show(this.message, found);
    const next = platformHost && until(checkedAt, checkEvery);
    show(this.times, [domain.since, checkedAt, next], ([since]) => [
      'Since ',
      time(since),
      ...(checkedAt ? ['. Last checked ', time(checkedAt)] : []),
      ...(next ? [`. Checks again ${next}`] : []),
      '.',
    ]);
    this.addresses = addresses;
    const isThere = !isRecordWrong || Boolean(message?.includes('Its CNAME record is right.'));
    const isChange = reason === 'wrong_target' && !deletion;
    const task = { record, isRecordWrong, isThere, isChange, deletion, addresses, caa };
    show(this.record, task, () => tasks(task));
    // Without a platform, the record has no target.
    this.record.hidden = !record.value;
    // An ALIAS record has no form in zone files.
    this.copy.hidden = !record.value || (record.type !== 'CNAME' && addresses.length === 0);
    this.makePrimary.hidden = isPrimary || state === 'pending_dns' || Boolean(leads);
    this.visit.hidden = isRecordWrong;
    // The first HTTPS request is the next step of a verified domain.
    this.visit.classList.toggle('main', state === 'verified');
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
    const records = type === 'CNAME' ? [{ type, value: `${value}.` }] : this.addresses;
    const lines = records.map((record) => `${this.name}. ${ttl} IN ${record.type} ${record.value}`).join('\n');
    try {
      await navigator.clipboard.writeText(lines);
      announce(`Copied ${lines}`);
      this.copied.hidden = false;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.copied.hidden = true), COPIED_MS);
    } catch {
      this.page.open(this);
      this.record.focus();
    }
  }

  askToRemove() {
    const { name, displayName, isPrimary } = this.domain;
    const lost = this.redirects.filter(({ from, to }) => from === name || to === name);
    const left = lost.filter(({ to }) => to === name).map(({ from }) => from);
    const [stay, serve, them] = left.length > 1 ? ['stay', 'serve', 'them'] : ['stays', 'serves', 'it'];
    const consequence = [
      name === this.page.home ? 'It keeps working, because it is the host of --base-url.' : 'It stops working immediately. Delete its DNS record too, so that nobody else on the platform can serve the name.',
      isPrimary && 'The next domain that verifies becomes primary.',
      lost.length && `This also removes ${lost.map(({ from, to }) => `the redirect from ${from} to ${to}`).join(', ')}.`,
      left.length && `${left.join(' and ')} ${stay}, and then ${serve} the site itself, unless you remove ${them} too.`,
    ];
    ask(`Remove ${displayName}?`, consequence.filter(Boolean).join(' '), async (close) => {
      const { wasPrimary } = await this.page.call('DELETE', this.path);
      close();
      this.page.removed(this, wasPrimary && 'There is no primary domain now');
      await this.page.refresh();
    });
  }
}

// The steps that are left, or the record that exists. Each value has a button that copies it.
function tasks({ record, isRecordWrong, isThere, isChange, deletion, addresses, caa }) {
  const table = (what, records) => valueTable(element('caption', {}, `${what} in the DNS settings of `, element('strong', {}, ...dotted(record.zone))), records);
  if (caa) return [table('Create this record', [caa]), table('The record', [record])];
  if (!isRecordWrong) return [table('The record', [record])];
  const create = [table(isThere ? 'The record' : isChange ? 'Change the record to this one' : 'Create this record', [record])];
  if (addresses.length > 0) {
    const rows = addresses.map((address) => ({ ...address, name: record.name, ttl: record.ttl }));
    create.push(valueTable(element('caption', {}, 'or, if your provider has no such type, these instead'), rows));
  } else if (record.remark) {
    create.push(element('p', { class: 'note' }, record.remark));
  }
  const steps = [
    deletion && [element('p', { class: 'deletion' }, deletion)],
    !isThere && create,
    [element('p', {}, 'Choose ', element('em', {}, 'Verify'), '. DNS changes can take up to 48 hours.')],
  ];
  return [element('ol', { class: 'steps' }, ...steps.filter(Boolean).map((step) => element('li', {}, ...step)))];
}

const COLUMNS = { Type: 'type', Name: 'name', Value: 'value', TTL: 'ttl' };

// The roles are named because a phone shows each row as a block, and browsers then drop the roles that are implied.
function valueTable(caption, records) {
  const heads = Object.keys(COLUMNS).map((head) => element('th', { scope: 'col', role: 'columnheader' }, head));
  const cell = (record) => ([head, of]) => {
    const value = element('code', {}, ...dotted(String(record[of])));
    // A type is chosen from a list, and cannot be pasted.
    return element('td', { role: 'cell', 'data-head': head }, value, ...(head === 'Type' ? [] : [copyButton(head, value, announce)]));
  };
  const row = (...of) => element('tr', { role: 'row' }, ...of);
  const body = records.map((record) => row(...Object.entries(COLUMNS).map(cell(record))));
  const groups = [element('thead', { role: 'rowgroup' }, row(...heads)), element('tbody', { role: 'rowgroup' }, ...body)];
  return element('table', { role: 'table' }, caption, ...groups);
}

function visitLink(name) {
  const about = element('span', { class: 'unseen' }, ` ${name} in a new tab`);
  return element('a', { href: `https://${name}/`, target: '_blank', rel: 'noopener noreferrer' }, 'Open', about);
}
