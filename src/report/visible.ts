/**
 * Texts of models, modules and conversations, as a page or a terminal may show them. Invariant: what is not seen otherwise, and could move a
 * cursor, set colours or turn the direction of writing, is spelled out (`\u{1b}`): a reader sees what is there, and it does nothing.
 */

/** Control characters other than tab and line break, what turns the direction of writing or has no width, halves of surrogate pairs. */
const UNSEEN = /[^\P{Cc}\t\n]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Cs}/gu;

export const visible = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
