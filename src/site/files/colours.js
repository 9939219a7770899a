// Code in colours: JSON, HTTP, shells, Python, JavaScript and configuration files by the same few rules, with the classes of
// site.css; and JSON in lines.
import { element } from './elements.js';

const W = String.raw`\p{L}\p{N}_`;
const WORD = `[${W}][${W}-]*`;
const NUMBER = `[0-9](?:[${W}.:-]*[${W}])?`;
const VARIABLE = String.raw`\$(?:\{[^}]*\}|[${W}]+)`;
// A quote within a word is an apostrophe, unless an f is before it, as before a string of Python.
const string = (quote) => String.raw`(?:(?<![${W}])|(?<=f))${quote}(?:[^${quote}\\]|\\[^])*${quote}`;
// These words, unless they are a part of a path or a longer word.
const among = (words) => `(?<![/.-])(?:${words.replaceAll(' ', '|')})(?![${W}/.-])`;
const KEYWORDS = among(
  'and as async await case const def do done elif else esac except export fi for from function if import in let new not ' +
    'of or raise return then throw try while with',
);

const PARTS = new RegExp(
  [
    String.raw`(?<c>(?<!\S)(?:#|//).*)`,
    `(?<v>${VARIABLE})`,
    // Flags, keys of JSON, keys at the start of a line, and keywords.
    String.raw`(?<k>(?<!\S)-(?=[${W}-]*\p{L})[${W}-]+|(?:${string('"')}|${string("'")})(?=\s*:)|(?<=^ *)(?!\d)${WORD}(?=[:=])(?!://)|${KEYWORDS})`,
    `(?<s>${string('"')}|${string("'")}|${string('`')})`,
    `(?<n>(?:(?<=": )-|(?<![${W}./-]))${NUMBER}|${among('true false null True False None')})`,
    // No class: a character after a backslash, the number in a name, a version or a path, and other words.
    String.raw`\\[^]|${NUMBER}|${WORD}`,
  ].join('|'),
  'gmu',
);
const VARIABLES = new RegExp(`(?<v>${VARIABLE})`, 'gu');

// The code as text and elements: never as markup.
export function coloured(code) {
  // A shell and JavaScript put variables into some strings.
  const isFilled = (kind, part) => kind === 's' && !part.startsWith("'");
  return split(code, PARTS, (kind, part) => (isFilled(kind, part) ? split(part, VARIABLES, (_, name) => [name]) : [part]));
}

// The parts of a text that have a class, as elements, and the text between them. `inside` makes the children of an element.
function split(text, pattern, inside) {
  const made = [];
  let end = 0;
  for (const { 0: part, index, groups } of text.matchAll(pattern)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    made.push(text.slice(end, index), kind ? element('span', { class: kind }, ...inside(kind, part)) : part);
    end = index + part.length;
  }
  return [...made, text.slice(end)];
}

// Runs of characters that cannot be seen, or that change the direction of the text after them. Their JSON escapes mean the
// same in a JSON string.
export const UNSEEN = /([\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]+)/gu;
const escaped = (unseen) => `\\u${unseen.charCodeAt().toString(16).padStart(4, '0')}`;
export const visible = (text) => text.replace(UNSEEN, (run) => Array.from(run, escaped).join(''));

// JSON in lines. It keeps each number to the letter: JSON.parse would round an int64.
export function layOut(json) {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const line = (change) => `\n${'  '.repeat((depth += change))}`;
  const lay = (token, before, after) => {
    if ('{['.includes(token)) return '}]'.includes(after) ? token : token + line(1);
    if ('}]'.includes(token)) return '{['.includes(before) ? token : line(-1) + token;
    if (token === ',') return token + line(0);
    return token === ':' ? ': ' : visible(token);
  };
  return tokens.map((token, i) => lay(token, tokens[i - 1] ?? ' ', tokens[i + 1] ?? ' ')).join('');
}
