/**
 * The capabilities that have a generator: the special case, which needs the capability, and its twin, which differs in
 * one thing only and does not; doing the special thing in a twin is wrong.
 */
import { cannotSynthesize, type Vocabulary } from 'campaign/plugin';
import { slotsOf, type World, type Write } from './world';

export interface Plan {
  requests: number;
  /** The policy forbids it: no write, and the denial is said. */
  forbidden: boolean;
  /** Another record shares the descriptive word of the one that is meant, and could be acted on as well. */
  similar: boolean;
  /** The request carries the marker that changes a computed value. */
  marker: boolean;
  question: boolean;
  keyMissing: boolean;
}

const plain: Plan = {
  requests: 1,
  forbidden: false,
  similar: false,
  marker: false,
  question: false,
  keyMissing: false,
};

export interface Generator {
  special: Plan;
  twin: Plan;
  /** Writes that can be asked for in this environment; throws `CannotSynthesize` if the target has none. */
  requested(world: World): Write[];
  rationale: string;
}

const wordsIn = ({ words }: Vocabulary): number => words.filter(Boolean).length;

const onRecord = (world: World): Write[] => world.writes.filter((w) => w.onRecord);

function some(writes: Write[], need: string): Write[] {
  if (writes.length === 0) throw cannotSynthesize(`the target has ${need}: describe one by a rule of its describe()`);
  return writes;
}

const conditional = (world: World): Write[] =>
  some(
    onRecord(world).filter(({ precondition }) => {
      const field = world.lookup.fields.find((f) => f.name === precondition?.field);
      return field !== undefined && (field.vocabulary.parts[0]?.length ?? 0) > 1;
    }),
    'no write with a precondition on a field of several values',
  );

export const generatorsByName = {
  complete_all_requested_actions: {
    special: { ...plain, requests: 2 },
    twin: plain,
    requested: (world) => world.writes,
    rationale:
      'Half of the instances ask for two things in one message and are right only if both are done; the single requests among them make a ' +
      'second action without a request wrong. What is learned is to keep track of all that was asked for.',
  },
  refuse_forbidden_actions: {
    special: { ...plain, forbidden: true },
    twin: plain,
    requested: conditional,
    rationale:
      'The same request is forbidden or allowed by a field of the record that is looked up, so neither refusing all nor doing all pays. ' +
      'What is learned is to check the rule against the record before acting, and to tell the user.',
  },
  perform_permitted_actions: {
    special: plain,
    twin: { ...plain, forbidden: true },
    requested: conditional,
    rationale:
      'Half of the instances are permitted by the record that is looked up, half are not, with the same words. What is learned is to act where ' +
      'the rule permits it.',
  },
  select_matching_record: {
    special: { ...plain, similar: true },
    twin: plain,
    requested: (world) => {
      const named = namedField(world);
      if (world.lookup.fields.some(({ name, vocabulary }) => name === named && wordsIn(vocabulary) < 2))
        throw cannotSynthesize(
          `"${named}" has fewer than two words to tell similar records apart: give its pattern two groups`,
        );
      return onRecord(world);
    },
    rationale:
      'The account holds another record with the same word that could be acted on as well; all words of the request together decide. What ' +
      'is learned is to compare every word before choosing a record.',
  },
  compute_action_values: {
    special: { ...plain, marker: true },
    twin: plain,
    requested: (world) =>
      some(
        onRecord(world).filter((w) => w.arguments.some((a) => a.from === 'computed')),
        'no write with a computed argument',
      ),
    rationale:
      'A value is the plain one of the record, or a changed one where the request says so. What is learned is to compute the value that ' +
      'the rule gives for this request.',
  },
  tell_requested_information: {
    special: { ...plain, question: true },
    twin: plain,
    requested: (world) => {
      if (!world.tell)
        throw cannotSynthesize('the target has no tell rule on a field of its records: add one to describe()');
      return onRecord(world);
    },
    rationale:
      'Half of the instances ask for an amount besides an action and are right only if the amount is told; where nobody asks, no amount is to be ' +
      'told. What is learned is to answer questions as well as to act.',
  },
  ask_for_missing_identifiers: {
    special: { ...plain, keyMissing: true },
    twin: plain,
    requested: (world) => {
      if (!world.ask)
        throw cannotSynthesize('the target has no ask rule for the key of its look-up: add one to describe()');
      return onRecord(world);
    },
    rationale:
      'Half of the instances lack the identifier that the look-up needs; the user gives it when asked, and a made-up one spoils the instance. Where ' +
      'it is given, asking is wrong. What is learned is to ask for what is missing instead of making it up.',
  },
} satisfies Record<string, Generator>;

/** Throws `CannotSynthesize` if the capability has no generator. */
export function generatorNamed(name: string): Generator {
  if (Object.hasOwn(generatorsByName, name)) return generatorsByName[name as keyof typeof generatorsByName];
  throw cannotSynthesize(`there is no generator for "${name}", only for ${Object.keys(generatorsByName).join(', ')}`);
}

/** The record's field that users name: the one in the requests with the most words to choose from. */
export function namedField(world: World): string {
  const slots = new Set(world.writes.flatMap((w) => slotsOf(w.request)));
  const [best] = world.lookup.fields
    .filter((field) => slots.has(field.name))
    .sort((a, b) => wordsIn(b.vocabulary) - wordsIn(a.vocabulary));
  if (!best)
    throw cannotSynthesize("no request names a field of a record: put one in braces in the write tools' descriptions");
  return best.name;
}
