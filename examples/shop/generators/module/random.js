/** Seeded randomness, and drawing from vocabularies. Invariant: the same seed text and the same calls give the same draws. */
/** @typedef {import('trace-campaign/plugin').Vocabulary} Vocabulary */
/** @typedef {() => number} Random */

/** @type {(text: string, before?: number) => number} */
export function hashOf(text, before = 0x811c9dc5) {
  let h = before;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h;
}

/**
 * `before`: the hash of a text that stands before this one.
 * @type {(text: string, before?: number) => Random}
 */
export function randomOf(text, before) {
  let h = hashOf(text, before);
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  let state = (h ^ (h >>> 16)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * @template T
 * @param {Random} random
 * @param {readonly T[]} values at least one
 */
export const pick = (random, values) => /** @type {T} */ (values[Math.floor(random() * values.length)]);

/**
 * @template T
 * @param {Random} random
 * @param {readonly T[]} values
 */
export function shuffle(random, values) {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = /** @type {[T, T]} */ ([out[j], out[i]]);
  }
  return out;
}

/**
 * One option of each part. Words that are taken are left out where others are left.
 * @param {Random} random
 * @param {Vocabulary} vocabulary
 * @param {ReadonlySet<string>} taken
 */
export function drawParts(random, { parts, words }, taken) {
  const drawn = [];
  for (let i = 0; i < parts.length; i += 1) {
    const options = /** @type {string[]} */ (parts[i]);
    const free = words[i] && taken.size > 0 ? options.filter((option) => !taken.has(option)) : options;
    drawn.push(pick(random, free.length > 0 ? free : options));
  }
  return drawn;
}

/** @type {(vocabulary: Vocabulary, drawn: readonly string[], word: string) => string[]} */
export const withLastWord = ({ words }, drawn, word) =>
  drawn.map((part, i) => (i === words.lastIndexOf(true) ? word : part));

/** @type {(vocabulary: Vocabulary, text: string) => string | number} */
export const valueOf = ({ number }, text) => (number ? Number(text) : text);

/** @type {ReadonlySet<string>} */
const NONE = new Set();

/** @type {(random: Random, vocabulary: Vocabulary) => string | number} */
export const draw = (random, vocabulary) => valueOf(vocabulary, drawParts(random, vocabulary, NONE).join(''));
