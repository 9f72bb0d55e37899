/**
 * Leakage of the target's test tasks into synthesized instances. Invariant: equal words give equal hashes, whatever their case, spacing
 * and punctuation; modules are given hashes only, so that no test task's text is in one. Generated modules draw again when a run of
 * words of a first message has one of these hashes (src/synthesis/generators/module/text.js computes the same ones).
 */

const { imul } = Math;

/** Lower case, words and numbers only, single spaces. */
export const normalised = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** 53 bits (hex) of the normalised text, two hashes side by side over the hashes of its words, and how many words it has. Not for secrets. */
export function messageHash(text: string): string {
  const words = wordHashes(text);
  let [a, b] = [0, 0];
  for (const word of words) [a, b] = [withWord(a, word), withWordToo(b, word)];
  return `${bits(a, b).toString(16)}.${words.length}`;
}

function wordsOf(hash: string): number {
  const words = Number(hash.split('.')[1]);
  if (Number.isInteger(words)) return words;
  throw new RangeError(`"${hash}" is no messageHash(): it does not say of how many words`);
}

/** Messages of fewer words come up in any code, tool's answer or hint. */
const FEWEST_WORDS = 5;
export const isDistinctive = (hash: string): boolean => wordsOf(hash) >= FEWEST_WORDS;

/** What a module's text says: a line's end within its literals is no letter of the next word. */
export const spelledOut = (source: string): string => source.replace(/\\[nrt]/g, ' ');

/** Tells texts in which a run of words is, word for word, one of the messages with these hashes. No run is longer than the longest of them. */
export function forbiddenIn(hashes: readonly string[]): (text: string) => boolean {
  const forbidden = new Set(hashes.map((hash) => Number.parseInt(hash, 16)));
  const longest = Math.max(0, ...hashes.map(wordsOf));
  // Nearly all runs are told by their first 16 bits: there are millions in a long message.
  const known = new Uint8Array(2 ** 16);
  for (const hash of forbidden) known[Math.floor(hash / 2 ** 37)] = 1;
  return (text) => {
    const words = forbidden.size === 0 ? [] : wordHashes(text);
    for (let from = 0; from < words.length; from += 1)
      for (let to = from, a = 0, b = 0; to < Math.min(words.length, from + longest); to += 1) {
        a = withWord(a, words[to]!);
        b = withWordToo(b, words[to]!);
        if (known[a >>> 16] && forbidden.has(bits(a, b))) return true;
      }
    return false;
  };
}

const wordHashes = (text: string): number[] => normalised(text).split(' ').map(wordHash);
const withWord = (a: number, word: number): number => imul(a ^ word, 0x01000193);
const withWordToo = (b: number, word: number): number => imul(b ^ word, 0x85ebca6b);
const bits = (a: number, b: number): number => (a >>> 0) * 2 ** 21 + (b >>> 11);

/** FNV-1a over UTF-16 code units. */
function wordHash(word: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < word.length; i += 1) h = imul(h ^ word.charCodeAt(i), 0x01000193);
  return h ^ (h >>> 15);
}
