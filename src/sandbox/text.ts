/**
 * Text that a module wrote. Invariant: what is quoted of it in an error or a finding is short and has nothing in it that a terminal or a
 * file takes for anything but text.
 */
import { QUOTED_CHARS } from './limits';

/** Control characters other than tab and line ends; halves of surrogate pairs. */
const UNFIT = /[^\P{Cc}\t\n\r]|\p{Cs}/u;
/** For a single line: white space, and what turns the direction of writing, as well. */
const UNPRINTABLE = /(?:\s|\p{Cc}|\p{Cs}|[\u2028-\u202e\u2066-\u2069])+/gu;

/** Whether a text holds control characters or half a surrogate pair: no model and no file takes these as they are. */
export const isUnfit = (text: string): boolean => UNFIT.test(text);

/** One line of at most `most` characters (300 unless told) of it. */
export function quoted(text: string, most: number = QUOTED_CHARS): string {
  const line = text.slice(0, most).replace(UNPRINTABLE, ' ');
  return text.length > most ? `${line}…` : line;
}

/** Whether arrays and objects in a JSON text are nested more than `most` deep. */
export function isDeep(json: string, most: number): boolean {
  if (json.length <= 2 * most || countOf(json, ['[', '{'], most) <= most) return false;
  let [depth, inText] = [0, false];
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (character === '"') inText = !inText;
    else if (character === '\\') at += 1;
    else if (inText) continue;
    else if (character === '[' || character === '{') {
      depth += 1;
      if (depth > most) return true;
    } else if (character === ']' || character === '}') depth -= 1;
  }
  return false;
}

/** How often one of these characters stands in a text, counted up to one more than `most`: found faster than a text is read. */
function countOf(text: string, characters: readonly string[], most: number): number {
  let count = 0;
  for (const character of characters)
    for (let at = text.indexOf(character); at >= 0 && count <= most; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}
