/**
 * What instances there are and in which order: those of one capability, a special one and its twin, and those of a composite, whose pairs of
 * capabilities are needed both, one alone or not at all. Invariants: the seeds of an account follow one another; each part of a pair is
 * needed in less than 55% of a composite's instances, and so many at most do not need the two together.
 */
import type { Candidate } from '../../domain/capability';
import { isFailure, OutsideFailure } from '../../domain/failures';
import { generatorsByName, plain, type CapabilityName, type Generator, type Plan } from './capabilities';
import { slotsOf, type World, type Write } from './world';

/** Accounts of one make: which instances are drawn from them. */
export interface Family {
  /** Of the accounts. */
  share: number;
  /** By branch. */
  plans: Record<string, Plan>;
  /** What the branch `both` is told as: of several pairs the policy that a training starts from may have mastered one already. */
  both?: string;
  /** Tools of the first and the second thing that an account is drawn for; the plan's special part is the first one's. */
  requested: string[][];
}

export interface Member {
  branch: string;
  /** The account's second request comes first, or is the one that is asked. */
  turned: boolean;
}

export interface Families {
  families: Family[];
  /** The instances of an account, for accounts in turn; as many of each. */
  cycle: Member[][];
  /** Why training there should transfer, and what comes after what. */
  rationale: string;
  order: string;
}

const member = (branch: string, turned = false): Member => ({ branch, turned });

/** Of one capability: every second instance is the twin of the one before. */
const TWINS = [[member('special'), member('twin')]];

const quadruple = (second: Member): Member[] => [member('both'), second, member('both', true), member('none')];
/** Of 24 instances 11 need both, 2 the first alone, 2 the second, 9 none (docs/synthesis.md says why). */
const QUADRUPLES = [
  quadruple(member('none', true)),
  quadruple(member('first')),
  quadruple(member('none', true)),
  quadruple(member('second')),
  [member('both'), member('first'), member('second'), member('none')],
  quadruple(member('none', true)),
];

export function familyOf({ special, twin, requested, rationale }: Generator, world: World): Families {
  const tools = namesOf(requested(world));
  const plans = { special, twin };
  const most = Math.max(special.requests, twin.requests);
  return {
    families: [{ share: 1, plans, requested: Array.from({ length: most }, () => tools) }],
    cycle: TWINS,
    rationale,
    order: 'Every second instance is the twin of the one before',
  };
}

/** Pairs that make no sense here are left out; throws `CannotSynthesize` with the reasons where none is left. */
export function familiesOf(parts: NonNullable<Candidate['parts']>, world: World): Families {
  const dropped: string[] = [];
  const kept = parts.flatMap(({ names, share }) => {
    try {
      return [{ names, family: { share, ...together(names, world) } }];
    } catch (error) {
      if (!isFailure(error, 'CannotSynthesize')) throw error;
      dropped.push(`${names.join(' with ')}: ${error.message}`);
      return [];
    }
  });
  if (kept.length === 0)
    throw new OutsideFailure(
      'CannotSynthesize',
      `no pair of it can be combined: ${dropped.join('; ') || 'it has none'}`,
    );
  const short = kept.map(({ names }) => names.map((name) => name.split('_')[0]).join('_and_'));
  const told = kept.map((_, n) => (new Set(short).size === short.length ? short[n]! : `both_${n + 1}`));
  const pairs = kept.map(({ names, family }) => `${names.join(' with ')} (${family.share.toFixed(2)})`);
  return {
    families: kept.map(({ family }, n) => ({ ...family, both: told[n]! })),
    cycle: QUADRUPLES,
    rationale:
      `Instances need two capabilities at once: ${pairs.join(', ')}. What is learned is to use both in one conversation, and each where it is ` +
      `needed.${dropped.length > 0 ? ` Left out: ${dropped.join('; ')}.` : ''}`,
    order: 'Four instances are made of one account; of 24, 11 need both, 2 only the first, 2 only the second, 9 none',
  };
}

/** What instances of a pair are: each part is there as in its special case, or not, as in its twin. */
function together(names: readonly string[], world: World): Omit<Family, 'share'> {
  const [first, second] = names.map(generatorNamed) as [Generator, Generator];
  const plans = {
    both: merged(first.special, second.special),
    first: merged(first.special, second.twin),
    second: merged(first.twin, second.special),
    none: merged(first.twin, second.twin),
  };
  const all = Object.values(plans);
  const some = (is: (plan: Plan) => boolean): boolean => all.some(is);
  const cannot = (why: string): never => {
    throw new OutsideFailure('CannotSynthesize', why);
  };
  if (new Set(all.map((plan) => JSON.stringify(plan))).size < all.length) cannot('they are about the same thing');
  if (some(({ forbidden, marker }) => forbidden && marker)) cannot('for what is forbidden no value is computed');
  const severalAsked = some(({ requests }) => requests > 1);
  const aboutRecord = slotsOf(world.tell?.question ?? '').some((slot) =>
    world.lookup.fields.some((f) => f.name === slot),
  );
  if (severalAsked && some(({ question }) => question) && !aboutRecord)
    cannot('the question of the tell rule does not say which of two records it is about: name a field of it in braces');

  const possible = second.requested(world);
  const main = first
    .requested(world)
    .filter((write) => possible.includes(write))
    // What is refused has no computed amount to tell.
    .filter((write) => !some(({ forbidden, question }) => forbidden && question) || !tellsComputed(write, world));
  if (main.length === 0) cannot('no write can be asked for in both');
  // The second thing of an account is asked for alone as well: then it must do for what the plan says.
  const anything = severalAsked && JSON.stringify(plans.none) === JSON.stringify(plain);
  return { plans, requested: [namesOf(main), namesOf(anything ? world.writes : main)] };
}

export function generatorNamed(name: string): Generator {
  if (Object.hasOwn(generatorsByName, name)) return generatorsByName[name as CapabilityName];
  throw new OutsideFailure(
    'CannotSynthesize',
    `there is no generator for "${name}", only for ${Object.keys(generatorsByName).join(', ')}`,
  );
}

/** Whatever one of them says. */
const merged = (a: Plan, b: Plan): Plan => ({
  requests: Math.max(a.requests, b.requests),
  forbidden: a.forbidden || b.forbidden,
  similar: a.similar || b.similar,
  marker: a.marker || b.marker,
  question: a.question || b.question,
  keyMissing: a.keyMissing || b.keyMissing,
});

const tellsComputed = (write: Write, { tell }: World): boolean =>
  write.arguments.some((argument) => argument.from === 'computed' && argument.field === tell?.field);

const namesOf = (writes: readonly Write[]): string[] => writes.map(({ tool }) => tool);
