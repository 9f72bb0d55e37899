/** JSON in a text. */
import { z } from 'zod';
import { reasonOf } from './failures';
import type { ToolCall } from './messages';

/** For a schema to be piped behind: text that is no JSON is an issue like any other, and never an exception without a place. */
export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `no JSON: ${reasonOf(error)}` });
    return z.NEVER;
  }
});

/** Of a text that is JSON: its strings, its numbers, and white space between them. */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/.source;
const PARTS = new RegExp(`${STRING}|-?\\d[\\d.eE+-]*|\\s+`, 'g');

/** Whether JavaScript has a number so large, and of whole ones this very one. */
function isHeld(digits: string): boolean {
  const value = Number(digits);
  return Number.isFinite(value) && (!/^-?\d+$/.test(digits) || BigInt(digits) === BigInt(value));
}

/** The value, in which a number that JavaScript does not have is the text that it was written as. */
export const parseJson = (text: string): unknown =>
  JSON.parse(text.replace(PARTS, (part) => (/^[-\d]/.test(part) && !isHeld(part) ? `"${part}"` : part)));

/** A call's arguments, of their text; undefined if that is no JSON object. The text is kept where the values alone would not give it back. */
export function readArguments(text: string): Pick<ToolCall, 'arguments' | 'argumentsText'> | undefined {
  try {
    JSON.parse(text); // what follows takes it for JSON
  } catch {
    return undefined;
  }
  const values = parseJson(text);
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return undefined;
  const written = text.replace(PARTS, (part) => {
    if (part.startsWith('"')) return JSON.stringify(JSON.parse(part));
    return part.trim();
  });
  const given = { arguments: values as ToolCall['arguments'] };
  return written === JSON.stringify(values) ? given : { ...given, argumentsText: written };
}
