/**
 * Leakage of the target's test tasks into synthesized instances. Invariant: equal words give equal hashes, whatever their case, spacing
 * and punctuation; modules are given hashes only, so that no test task's text is in one. Generated modules draw again when a run of
 * words of a first message has one of these hashes (generators/kernel.ts computes the same ones).
 */

/** Lower case, words and numbers only, single spaces. */
export const normalised = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** 53 bits (hex) of the normalised text: two FNV-1a-like hashes side by side. Not for secrets. */
export function messageHash(text: string): string {
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  for (const unit of normalised(text)
    .split('')
    .map((c) => c.charCodeAt(0))) {
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b);
  }
  return ((a >>> 0) * 2 ** 21 + (b >>> 11)).toString(16);
}
