// A small DNS server of a test's own: what it is given is what every name has. It can also keep everybody waiting.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPES = { A: 1, CNAME: 5, AAAA: 28, CAA: 257 };

// A name as in a message, without compression (RFC 1035, section 3.1).
function labels(name) {
  const parts = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...parts, Buffer.from([0])]);
}

const DATA = {
  A: (address) => Buffer.from(address.split('.').map(Number)),
  // Eight groups, such as '2001:db8:0:0:0:0:0:1'.
  AAAA: (address) => Buffer.from(address.split(':').map((group) => group.padStart(4, '0')).join(''), 'hex'),
  CNAME: labels,
  // Such as '0 issue "ca.example"' (RFC 8659, section 4.1).
  CAA: (text) => {
    const [, flags, tag, value] = /^(\d+) (\w+) "(.*)"$/.exec(text);
    return Buffer.from([Number(flags), tag.length, ...Buffer.from(tag + value)]);
  },
};

// The name and the type of the question, and where it ends.
function questionOf(message) {
  const name = [];
  let at = 12;
  while (message[at] > 0) {
    name.push(message.toString('latin1', at + 1, at + 1 + message[at]));
    at += 1 + message[at];
  }
  return { name: name.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function response(message, records) {
  const { name, type, end } = questionOf(message);
  const own = Object.entries(records[name] ?? {});
  const found = own.filter(([kind]) => kind === 'CNAME' || TYPES[kind] === type);
  const answers = found.map(([kind, text]) => {
    const data = DATA[kind](text);
    const fixed = Buffer.alloc(12);
    fixed.writeUInt16BE(0xc00c, 0); // the name of the question
    fixed.writeUInt16BE(TYPES[kind], 2);
    fixed.writeUInt16BE(1, 4);
    fixed.writeUInt32BE(60, 6);
    fixed.writeUInt16BE(data.length, 10);
    return Buffer.concat([fixed, data]);
  });
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8580, 2); // a response, authoritative, recursion desired and available, no error
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers.length, 6);
  return Buffer.concat([head, message.subarray(12, end), ...answers]);
}

// Starts it. `records` is such as { 'www.example.com': { CNAME: 'sites.example.net' } }, and may be changed.
export async function serveDns() {
  const socket = createSocket('udp4');
  const server = { records: {}, address: '', hold, release, stop: () => socket.close() };
  let held = null;
  socket.on('message', (message, { address, port }) => {
    const answer = () => socket.send(response(message, server.records), port, address);
    if (held) held.push(answer);
    else answer();
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  server.address = `127.0.0.1:${socket.address().port}`;
  return server;

  // Answers nobody until `release`.
  function hold() {
    held = [];
  }
  function release() {
    const waiting = held;
    held = null;
    for (const answer of waiting) answer();
  }
}
