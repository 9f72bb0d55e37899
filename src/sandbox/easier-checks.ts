/** What easier instances must be beside what every instance is. Invariant: the same kind of instance as the full one of the seed, and less to do. */
import { saidBy } from './audit-policy';
import type { ScriptedEpisode } from './scripted-episode';

/** `full`: the solutions of the full instances, of these seeds among others. */
export function* easierFindings(
  full: readonly ScriptedEpisode[],
  easier: readonly ScriptedEpisode[],
): Generator<string> {
  const pairs = easier.flatMap((one) => {
    const other = full.find(({ seed }) => seed === one.seed);
    return other ? [{ one, other }] : [];
  });
  const turned = pairs.find(({ one, other }) => one.branch !== other.branch);
  if (turned)
    yield (
      `easier: seed ${turned.one.seed} is of the branch ${turned.one.branch}, and of ${turned.other.branch} as make() gives it: ` +
      `keep the kind of instance, and leave out what is beside it`
    );
  const long = pairs.find(({ one, other }) => saidBy(one.messages).length > saidBy(other.messages).length);
  if (long)
    yield (
      `easier: seed ${long.one.seed} takes ${saidBy(long.one.messages).length} messages, and ${saidBy(long.other.messages).length} ` +
      `as make() gives it: an easier instance takes no more`
    );
  if (pairs.length > 0 && pairs.every(({ one, other }) => one.made === other.made))
    yield 'easier: it gives what make() gives: leave something out, or do not export it';
}
