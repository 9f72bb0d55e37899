/** What a module must not have from the target's data. Invariant: of identifiers only those are looked for that the model was shown. */
import type { EnvironmentDescription } from '../../domain/environment';
import { openModule } from '../../sandbox/module';
import { forbiddenIn } from '../../sandbox/leakage';
import { play } from '../../sandbox/scripted-episode';

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

/** Runs of words are looked at pairwise: a long text in parts, each the second half of the one before and as much again. */
const PART = 20_000;
const partsOf = (text: string): string[] =>
  Array.from({ length: Math.max(1, Math.ceil((2 * text.length) / PART) - 1) }, (_, n) =>
    text.slice((n * PART) / 2, (n * PART) / 2 + PART),
  );

/** Seeds of which a user says the text of a test task. */
export async function leakingSeeds(
  module: ReturnType<typeof openModule>,
  { seeds, forbidden }: { seeds: readonly number[]; forbidden: readonly string[] },
): Promise<number[]> {
  const isForbidden = forbiddenIn(forbidden);
  const leaking: number[] = [];
  for (const seed of forbidden.length > 0 ? seeds : []) {
    const { messages } = await play(module, { seed, script: await module.solve(seed) });
    if (messages.some(({ role, content }) => role === 'user' && partsOf(content).some(isForbidden))) leaking.push(seed);
  }
  return leaking;
}
