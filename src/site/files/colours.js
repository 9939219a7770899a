// Code in colours, with the classes of site.css; and JSON in lines.
import { element } from './elements.js';

// Keys and flags, strings, comments, words of a language, and numbers, as `colours.rs` has them. A shell takes what
// follows a backslash as it is.
const PARTS = new RegExp(
  [
    String.raw`\\.`,
    String.raw`(?<k>(?:"(?:[^"\\]|\\.)*"|'[^'\\]*')(?=\s*:)|(?<=\s)--?[A-Za-z][\w-]*|\b(?:await|const|if|import|new|not|raise|throw)\b)`,
    String.raw`(?<s>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\`(?:[^\`\\]|\\.)*\`)`,
    String.raw`(?<c>(?:#|\/\/).*)`,
    String.raw`(?<n>-?\b\d[\d.eE+-]*|\b(?:false|null|true)\b)`,
  ].join('|'),
  'g',
);

// The code as text and elements: never as markup.
export function coloured(code) {
  const made = [];
  let end = 0;
  for (const { 0: part, index, groups } of code.matchAll(PARTS)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    made.push(code.slice(end, index), kind ? element('span', { class: kind }, part) : part);
    end = index + part.length;
  }
  return [...made, code.slice(end)];
}

// JSON in lines. It keeps each number to the letter: JSON.parse would round an int64.
export function layOut(json) {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const line = (change) => `\n${'  '.repeat((depth += change))}`;
  const lay = (token, before, after) => {
    if ('{['.includes(token)) return '}]'.includes(after) ? token : token + line(1);
    if ('}]'.includes(token)) return '{['.includes(before) ? token : line(-1) + token;
    if (token === ',') return token + line(0);
    return token === ':' ? ': ' : token;
  };
  return tokens.map((token, i) => lay(token, tokens[i - 1] ?? ' ', tokens[i + 1] ?? ' ')).join('');
}
