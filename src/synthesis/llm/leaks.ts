/** What a module must not have from the target's data. Invariant: of identifiers only those are looked for that the model was shown. */
import type { EnvironmentDescription } from '../../domain/environment';
import { forbiddenIn, isDistinctive, spelledOut } from '../../sandbox/leakage';

/** Identifiers with so many digits are of one record; in shorter ones, numbers, years and dates two worlds may agree. */
const DIGITS = 4;

/** Words that name a record: `W5918442`, `credit_card_7815826`, `78784`. */
export const identifiersIn = (text: string): string[] =>
  // Each expression looks at a character once, whatever the text: from the word in which the first digit is to the last letter or digit.
  [...new Set(text.match(/[A-Za-z0-9_-]+/g) ?? [])]
    .map((run) => run.replace(/^[^\d]*-/, '').replace(/(?<![-_])[-_]+$/, ''))
    .filter((word) => (word.match(/\d/g)?.length ?? 0) >= DIGITS)
    .filter((word) => !/^\d{1,4}$/.test(word) && !/^\d{4}-\d\d/.test(word));

/** Identifiers of what was shown that stand in the module, except those that policy and tools name as examples. */
export function copiedIdentifiers(
  source: string,
  { shown, target }: { shown: string; target: EnvironmentDescription },
) {
  const allowed = new Set(identifiersIn(`${target.policy} ${JSON.stringify(target.tools)}`));
  const own = new Set(identifiersIn(source));
  return identifiersIn(shown).filter((word) => own.has(word) && !allowed.has(word));
}

/** Whether the module's text holds that of a test task, on whatever seed it would be said. */
export const quotesTask = (source: string, forbidden: readonly string[]): boolean =>
  forbiddenIn(forbidden.filter(isDistinctive))(spelledOut(source));
