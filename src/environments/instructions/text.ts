/** What a text is made of, counted as a reader of English counts, whatever its case and markup. */

const WORD = /\d+(?:[.,:]\d+)+|[\p{L}\d]+(?:['’\-‑][\p{L}\d]+)*/gu;

/** Words as written: `don't`, `well-known`, `1,000` and `3.5` are one each; punctuation and markup are none. */
export const wordsOf = (text: string): string[] => text.match(WORD) ?? [];

export const plainWords = (text: string): string[] =>
  wordsOf(text).map((word) => word.toLowerCase().replaceAll('’', "'"));

/** Lines that hold anything, without the white space around them. */
export const linesOf = (text: string): string[] =>
  text
    .split(/\r\n|[\r\n\u2028\u2029]/)
    .map((line) => line.trim())
    .filter(Boolean);

export const paragraphsOf = (text: string): string[] =>
  text
    .replaceAll('\r\n', '\n')
    .split(/\n[^\S\n]*\n\s*/)
    .map((block) => block.trim())
    .filter((block) => wordsOf(block).length > 0);

const BULLET = /^[-*•–][^\S\n]+(?=\S)/;
const NUMBER = /^(\d+)[.)][^\S\n]+(?=\S)/;

/** What stands after each bullet; a dash within a line is none. */
export const bulletsOf = (text: string): string[] =>
  linesOf(text).flatMap((line) => (BULLET.test(line) ? [line.replace(BULLET, '')] : []));

/** The numbers that lines begin with: `1.` or `1)`. */
export const numbersOf = (text: string): number[] =>
  linesOf(text).flatMap((line) => {
    const found = NUMBER.exec(line);
    return found ? [Number(found[1])] : [];
  });

/** A full stop after one of these ends no sentence. */
const TITLES = /(?:^|[\s("'*])(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|no|e\.g|i\.e|p\.s)\.$/i;
/** Nor after these, unless the text goes on with a capital, or ends. */
const ABBREVIATIONS = /(?:^|[\s("'*])(?:etc|approx|a\.m|p\.m|u\.s|u\.k)\.$/i;
/** A letter by itself, as in `J. Smith`; `I.` may well end a sentence. */
const INITIAL = /(?:^|\s)(?!I\.)[A-Z]\.$/;
const END = /(?:\.{2,}|[.!?…]+)["'”’)\]*_]*(?=\s|$)/gu;
const ENDED = /[.!?…]["'”’)\]*_]*$/u;

/**
 * Sentences: what ends in `.`, `!` or `?` before white space, an empty line or the next item of a list; what is left at the end is one as well.
 * An ellipsis before a small letter ends none, unless the text has no capitals at all.
 */
export function sentencesOf(text: string): string[] {
  const hasCapitals = /\p{Lu}/u.test(text);
  return paragraphsOf(text)
    .flatMap(itemsOf)
    .flatMap((block) => split(block, hasCapitals))
    .filter((sentence) => wordsOf(sentence).length > 0);
}

/** A block's items without their marks, or the block as one line. */
function itemsOf(block: string): string[] {
  const items: string[] = [];
  for (const line of linesOf(block)) {
    const isItem = BULLET.test(line) || NUMBER.test(line);
    if (isItem || items.length === 0) items.push(line.replace(BULLET, '').replace(NUMBER, ''));
    else items.push(`${items.pop()} ${line}`);
  }
  return items;
}

function split(block: string, hasCapitals: boolean): string[] {
  const sentences: string[] = [];
  let begun = 0;
  for (const { index, 0: mark } of block.matchAll(END)) {
    const end = index + mark.length;
    if (!isEnd({ before: block.slice(begun, end), after: block.slice(end).trim(), mark, hasCapitals })) continue;
    sentences.push(block.slice(begun, end).trim());
    begun = end;
  }
  return [...sentences, block.slice(begun).trim()].filter(Boolean);
}

function isEnd(o: { before: string; after: string; mark: string; hasCapitals: boolean }): boolean {
  const { before, after, mark, hasCapitals } = o;
  if (after === '') return true;
  if (TITLES.test(before) || INITIAL.test(before)) return false;
  const goesOn = hasCapitals && /^["'“‘(*]*\p{Ll}/u.test(after);
  if (ABBREVIATIONS.test(before)) return hasCapitals && !goesOn;
  return !(goesOn && /^(?:\.{2,}|…)/.test(mark));
}

/** True if the last sentence is not cut off. */
export const isFinished = (text: string): boolean => ENDED.test(text.trim());

export function runsOf(words: readonly string[], n: number): string[] {
  return Array.from({ length: Math.max(0, words.length - n + 1) }, (_, i) => words.slice(i, i + n).join(' '));
}

/** A word without the ending of a plural, a possessive or a verb form, so that `bees` and `bee` are one. */
export function stem(word: string): string {
  const bare = word.replace(/'s?$/, '');
  if (bare.length > 4 && bare.endsWith('ies')) return `${bare.slice(0, -3)}y`;
  const cut = bare.replace(/(?<=\p{L}{3})(?:ing|ed|es|s)$/u, '');
  return cut.replace(/(?<=\p{L}{3})e$/u, '').replace(/([^aeiou])\1$/u, '$1');
}
