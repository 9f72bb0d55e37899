/** Which fields of a campaign differ from those that it was started with. */
import { isDeepStrictEqual } from 'node:util';
import type { Campaign } from '../../domain/campaign';

const MOST = 5;
const LONGEST = 60;

/** Returns e.g. `training.steps is 40, was 30; seed is 2, was 1`; empty if none differs. */
export function changedFieldsText(before: Campaign, now: Campaign): string {
  const changed = [...differences(asJson(before), asJson(now), '')];
  const shown = changed
    .slice(0, MOST)
    .map(({ field, was, is }) => `${field} is ${valueText(is)}, was ${valueText(was)}`);
  return [...shown, ...(changed.length > MOST ? [`${changed.length - MOST} more`] : [])].join('; ');
}

interface Difference {
  field: string;
  was: unknown;
  is: unknown;
}

function* differences(was: unknown, is: unknown, field: string): Generator<Difference> {
  if (isDeepStrictEqual(was, is)) return;
  if (!isRecord(was) || !isRecord(is)) return yield { field, was, is };
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)]))
    yield* differences(was[name], is[name], field === '' ? name : `${field}.${name}`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const asJson = (campaign: Campaign): unknown => JSON.parse(JSON.stringify(campaign));

function valueText(value: unknown): string {
  const text = value === undefined ? 'absent' : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
