/**
 * First half of every generated module's text: seeded randomness, drawing from vocabularies, checking calls, keeping test messages out. Plain ES2020 for
 * QuickJS; no backticks and no template slots inside. Invariant: `params` is JSON on the first line, everything else is fixed text.
 */
export const KERNEL = String.raw`
function randomOf(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  let state = (h ^ (h >>> 16)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
const pick = (random, values) => values[Math.floor(random() * values.length)];
function shuffle(random, values) {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = [out[j], out[i]];
  }
  return out;
}

// One option of each part; words already taken are left out, and the last words part is "word" if that is given.
function drawParts(random, { parts, words }, taken, word) {
  const last = words.lastIndexOf(true);
  return parts.map((options, i) => {
    if (i === last && word !== undefined) return word;
    const free = words[i] && taken.size > 0 ? options.filter((option) => !taken.has(option)) : options;
    return pick(random, free.length > 0 ? free : options);
  });
}
const value = (vocabulary, text) => (vocabulary.number ? Number(text) : text);
const draw = (random, vocabulary) => value(vocabulary, drawParts(random, vocabulary, new Set()).join(''));

// The part of JSON Schema that tool arguments use.
function matches(schema, given) {
  if (schema.enum && !schema.enum.includes(given)) return false;
  if (schema.type === 'integer' || schema.type === 'number') {
    return (
      typeof given === 'number' && Number.isFinite(given) && (schema.type === 'number' || Number.isInteger(given)) &&
      given >= (schema.minimum ?? -Infinity) && given <= (schema.maximum ?? Infinity) &&
      (schema.multipleOf === undefined || given % schema.multipleOf === 0)
    );
  }
  return typeof given === 'string' && (schema.pattern === undefined || new RegExp(schema.pattern).test(given));
}
function fits(tool, given) {
  const properties = tool.parameters.properties ?? {};
  const names = Object.keys(properties);
  return names.length === Object.keys(given).length && names.every((n) => n in given && matches(properties[n], given[n]));
}

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, slot) => String(values[slot]));
const wordsOf = (text) => text.toLowerCase().match(/[a-z]+|\d+/g) ?? [];
const says = (texts, phrase) => (' ' + wordsOf(texts.join(' ')).join(' ') + ' ').includes(' ' + wordsOf(phrase).join(' ') + ' ');

const forbidden = new Set(params.forbidden.map((hash) => parseInt(hash, 16)));
function wordHash(word) {
  let h = 0x811c9dc5;
  for (let i = 0; i < word.length; i += 1) h = Math.imul(h ^ word.charCodeAt(i), 0x01000193);
  return h ^ (h >>> 15);
}
// True if a run of words of the text is, word for word, one of the messages whose hashes (leakage.ts) are given.
function hasForbidden(text) {
  if (forbidden.size === 0) return false;
  const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map(wordHash);
  for (let from = 0; from < words.length; from += 1) {
    let [a, b] = [0, 0];
    for (let to = from; to < words.length; to += 1) {
      a = Math.imul(a ^ words[to], 0x01000193);
      b = Math.imul(b ^ words[to], 0x85ebca6b);
      if (forbidden.has((a >>> 0) * 2097152 + (b >>> 11))) return true;
    }
  }
  return false;
}
`;
