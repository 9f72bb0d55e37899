/** Texts, compared as words so that spacing, case and punctuation change nothing; and arguments against their schemas. */
/** @typedef {import('trace-campaign/plugin').JsonSchema} JsonSchema */
/** @typedef {import('trace-campaign/plugin').ToolSchema} ToolSchema */

/**
 * Values in the place of names in braces.
 * @type {(text: string, values: Record<string, unknown>) => string}
 */
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, slot) => String(values[slot]));

/** @type {(text: string) => string[]} */
export const wordsOf = (text) => text.toLowerCase().match(/[a-z]+|\d+/g) ?? [];

/** @type {(texts: readonly string[], phrase: string) => boolean} */
export const says = (texts, phrase) =>
  ` ${wordsOf(texts.join(' ')).join(' ')} `.includes(` ${wordsOf(phrase).join(' ')} `);

/** @type {(word: string) => number} */
function wordHash(word) {
  let h = 0x811c9dc5;
  for (let i = 0; i < word.length; i += 1) h = Math.imul(h ^ word.charCodeAt(i), 0x01000193);
  return h ^ (h >>> 15);
}

/**
 * Tells texts in which a run of words is, word for word, one of the messages whose messageHash() (src/sandbox/leakage.ts) is given.
 * @type {(hashes: readonly string[]) => (text: string) => boolean}
 */
export function forbiddenIn(hashes) {
  const forbidden = new Set(hashes.map((hash) => parseInt(hash, 16)));
  return (text) => {
    if (forbidden.size === 0) return false;
    const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map(wordHash);
    return words.some((_, from) => {
      let [a, b] = [0, 0];
      return words.slice(from).some((word) => {
        a = Math.imul(a ^ word, 0x01000193);
        b = Math.imul(b ^ word, 0x85ebca6b);
        return forbidden.has((a >>> 0) * 2097152 + (b >>> 11));
      });
    });
  };
}

/** @type {(schema: JsonSchema, given: unknown) => boolean} */
function matches(schema, given) {
  if (schema.enum && !schema.enum.includes(/** @type {string | number} */ (given))) return false;
  if (schema.type === 'integer' || schema.type === 'number') {
    return (
      typeof given === 'number' &&
      Number.isFinite(given) &&
      (schema.type === 'number' || Number.isInteger(given)) &&
      given >= (schema.minimum ?? -Infinity) &&
      given <= (schema.maximum ?? Infinity) &&
      (schema.multipleOf === undefined || given % schema.multipleOf === 0)
    );
  }
  return typeof given === 'string' && (schema.pattern === undefined || new RegExp(schema.pattern).test(given));
}

/**
 * All arguments of the tool and no others.
 * @type {(tool: ToolSchema, given: Record<string, unknown>) => boolean}
 */
export function fits(tool, given) {
  const properties = Object.entries(tool.parameters.properties ?? {});
  return (
    properties.length === Object.keys(given).length &&
    properties.every(([name, schema]) => name in given && matches(schema, given[name]))
  );
}
