/** Changes in a JSON text, in linear time: a regular expression over long strings overflows its stack. */
import { endOfString } from './json-size';

/** Changes the parts of a JSON text between strings, and the strings with their quotes. */
export function rewriteJson(
  text: string,
  change: { outside: (part: string) => string; string?: (quoted: string) => string },
): string {
  const { outside, string = (quoted) => quoted } = change;
  const parts: string[] = [];
  for (let at = 0; ;) {
    const start = text.indexOf('"', at);
    parts.push(outside(text.slice(at, start < 0 ? undefined : start)));
    if (start < 0) return parts.join('');
    at = endOfString(text, start + 1) + 1;
    parts.push(string(text.slice(start, at)));
  }
}
