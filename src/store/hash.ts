/** Hashes of artifacts and keys. Equal values have equal digests, whatever the order of their object fields. */
import { createHash } from 'node:crypto';

export const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');

/** JSON with sorted object fields and no white space. Throws on what JSON can't hold: a key must never be derived from a value that was lost. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`);
    return `{${fields.join(',')}}`;
  }
  const storable = value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
  if (!storable) throw new TypeError(`canonical JSON can't hold ${String(value)} (${typeof value})`);
  return JSON.stringify(value);
}

export const digest = (value: unknown): string => sha256(canonical(value));

/** A seed for a sampler: 31 bits, which every server takes. */
export const seedOf = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE(0) >>> 1;
