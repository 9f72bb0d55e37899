/** Where two values that should be equal are not. Invariant: undefined exactly if they are deeply equal. */
import { isDeepStrictEqual } from 'node:util';
import { quoted } from '../trouble';

/** `messages.1.content: "a", then "b"`: the first place. */
export function firstDifference(one: unknown, other: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(one, other)) return undefined;
  if (isRecord(one) && isRecord(other) && Array.isArray(one) === Array.isArray(other)) {
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const found = firstDifference(one[key], other[key], path === '' ? key : `${path}.${key}`);
      if (found !== undefined) return found;
    }
  }
  return `${path || '(all of it)'}: ${shown(one)}, then ${shown(other)}`;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const shown = (value: unknown): string => quoted(JSON.stringify(value) ?? 'nothing', 120);
