/** Words of texts, so that observations, requests and arguments compare alike. Invariant: case and punctuation carry no meaning. */

/** Lower-case words and numbers; "i42", "35.5" and "user_id" are one word each. */
export const words = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+(?:[.'_-][\p{L}\p{N}]+)*/gu) ?? [];

/** True if the words of `phrase` occur in `text`, next to each other and in this order. An empty phrase is nowhere. */
export function mentions(text: string, phrase: string): boolean {
  const needle = words(phrase);
  return needle.length > 0 && ` ${words(text).join(' ')} `.includes(` ${needle.join(' ')} `);
}

export const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

/** One spelling for an argument or a record's value, whether it came as a JSON number or as text. */
export const spell = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));
