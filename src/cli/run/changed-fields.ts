/** Which fields of a campaign differ from those that it was started with. */
import type { Campaign } from '../../domain/campaign';
import { fieldsOf, shortName } from '../../report/format';

const MOST = 5;
const LONGEST = 60;

/** Returns e.g. `training.steps is 40, was 30; seed is 2, was 1`; empty if none differs. */
export function changedFieldsText(before: Campaign, now: Campaign): string {
  const [was, is] = [fieldsOf(before), fieldsOf(now)];
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter((field) => was.get(field) !== is.get(field));
  const valueText = (value = 'absent') => shortName(value, LONGEST);
  const shown = changed
    .slice(0, MOST)
    .map((field) => `${field} is ${valueText(is.get(field))}, was ${valueText(was.get(field))}`);
  return [...shown, ...(changed.length > MOST ? [`${changed.length - MOST} more`] : [])].join('; ');
}
