/**
 * What a reply holds beside its words: JSON, or code. Invariant: whatever a model writes, the answer is a value or a defect in words that a
 * model can act on, in time that grows with the text.
 */

/** Reasoning that a server left in the reply. */
const THOUGHT = '</think>';
/** Brackets that may turn out to open nothing, as in prose, are followed for so many characters in all. */
const FOLLOWED = 20_000_000;

/** From a line on that begins with a bracket: within the line, as blank ones would be gone through again from each of them. */
const BEGUN = /^[^\S\r\n\u2028\u2029]*[[{][\s\S]*/m;

/** The reply's JSON object or array: in a fence or else bare, the longest where there are several. */
export function jsonIn(text: string): { value: unknown } | { defect: string } {
  const reply = withoutThought(text);
  const fenced = blocksIn(reply).flatMap(({ language, body }) => (language === 'json' ? [body] : []));
  const found = longest(fenced.flatMap(valuesIn)) ?? longest(valuesIn(reply));
  if (found) return { value: found.value };
  const begun = fenced.find((body) => /^\s*[[{]/.test(body)) ?? BEGUN.exec(reply)?.[0];
  if (begun === undefined) return { defect: 'there is no JSON in it; give the answer as one JSON value' };
  return { defect: `its JSON can't be parsed: ${problemOf(begun)}; give the whole answer as one valid JSON value` };
}

/** The last fenced block of one of the languages; undefined if there is none. A fence that the end of the reply closes counts. */
export const codeIn = (text: string, languages: readonly string[]): string | undefined =>
  blocksIn(withoutThought(text)).findLast(({ language }) => languages.includes(language))?.body;

const withoutThought = (text: string): string => {
  const end = text.lastIndexOf(THOUGHT);
  return end < 0 ? text : text.slice(end + THOUGHT.length);
};

interface Block {
  /** In lower case; empty where none is named. */
  language: string;
  body: string;
}

/** A fence is a line of its own, closed by one of at least its length: shorter ones, and those within a line, are text. */
function blocksIn(text: string): Block[] {
  const blocks: Block[] = [];
  let open: { fence: string; language: string; lines: string[] } | undefined;
  const close = (): void => {
    if (open) blocks.push({ language: open.language, body: open.lines.join('\n') });
    open = undefined;
  };
  for (const line of text.split(/\r?\n/)) {
    const [, fence = '', info = ''] = /^ {0,3}(`{3,})([^`]*)$/.exec(line) ?? [];
    if (!open && fence) open = { fence, language: (/^\S*/.exec(info.trimStart())?.[0] ?? '').toLowerCase(), lines: [] };
    else if (open && fence.length >= open.fence.length && info.trim() === '') close();
    else open?.lines.push(line);
  }
  close();
  return blocks;
}

interface Found {
  value: unknown;
  length: number;
}

const longest = (found: readonly Found[]): Found | undefined =>
  found.reduce<Found | undefined>((best, one) => (best && best.length >= one.length ? best : one), undefined);

/** Every object and array in the text that is in no other one. */
function valuesIn(text: string): Found[] {
  const found: Found[] = [];
  const opening = /[[{]/g;
  for (let followed = 0, match = opening.exec(text); match && followed < FOLLOWED; match = opening.exec(text)) {
    const end = endOf(text, match.index);
    followed += (end ?? text.length) - match.index;
    const value = end === undefined ? undefined : parsed(text.slice(match.index, end));
    if (end === undefined || value === undefined) continue;
    found.push({ value, length: end - match.index });
    opening.lastIndex = end;
  }
  return found;
}

/** Where what opens at `start` is closed, brackets in strings aside; undefined if it is not. */
function endOf(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (quoted && character === '\\') at += 1;
    else if (character === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemOf(text: string): string {
  const start = text.search(/[[{]/);
  const end = endOf(text, start);
  if (end === undefined) return 'it breaks off before it is closed, or a quote or bracket in it is not closed';
  try {
    JSON.parse(text.slice(start, end));
    return 'something follows it';
  } catch (error) {
    return (error as Error).message;
  }
}
