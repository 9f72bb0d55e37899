/**
 * Leakage of the target's test tasks into synthesized instances. Invariant: equal words give equal hashes, whatever their case, spacing
 * and punctuation; modules are given hashes only, so that no test task's text is in one. Generated modules draw again when a run of
 * words of a first message has one of these hashes (src/synthesis/generators/module/text.js computes the same ones).
 */

/** Lower case, words and numbers only, single spaces. */
export const normalised = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** 53 bits (hex) of the normalised text: two hashes side by side over the hashes of its words. Not for secrets. */
export function messageHash(text: string): string {
  let [a, b] = [0, 0];
  for (const word of normalised(text).split(' ').map(wordHash)) {
    a = Math.imul(a ^ word, 0x01000193);
    b = Math.imul(b ^ word, 0x85ebca6b);
  }
  return ((a >>> 0) * 2 ** 21 + (b >>> 11)).toString(16);
}

/** FNV-1a over UTF-16 code units. */
function wordHash(word: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < word.length; i += 1) h = Math.imul(h ^ word.charCodeAt(i), 0x01000193);
  return h ^ (h >>> 15);
}
