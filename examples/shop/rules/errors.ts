/**
 * The classes of error that show when what was done is compared with what was needed, the capability that each shows to be lacking, and the
 * label of one trajectory for each: NA without an occasion, LACKING if the class's error is seen and nothing earlier explains it, else PRESENT:
 * in doubt PRESENT. Names and definitions hold for any target; a name belongs to one class.
 */
import type { Action, Label } from 'campaign/plugin';
import {
  type Call,
  neededRecords,
  readTrajectory,
  recordsOf,
  sameArguments,
  type Trajectory,
  wantedRecords,
  confusable,
  isNumber,
  mentions,
  type ObservedRecord,
  spell,
  words,
} from './tools';

interface ErrorKind {
  name: string;
  definition: string;
  /** Whether the trajectory's task gives the class the chance to go wrong. */
  arises: (trajectory: Trajectory) => boolean;
}

const kinds = {
  /** Some of the needed actions were done, others left out. */
  omitted_action: {
    name: 'complete_all_requested_actions',
    definition:
      'The request holds several things to do. The agent carries out each of them, or says why one is not possible, before it ends the conversation.',
    arises: (trajectory) => outcomesNeeded(trajectory) >= 2,
  },
  /** A write that the policy forbids: none was needed there. */
  forbidden_action: {
    name: 'refuse_forbidden_actions',
    definition:
      'What is asked for is not permitted by the policy in the present state. The agent checks the conditions first, leaves the data unchanged and tells the user that it is not possible.',
    arises: ({ statements, needed }) => statements.length > 0 || needed.length === 0,
  },
  /** The right tool on the wrong one of several similar records. */
  wrong_candidate: {
    name: 'select_matching_record',
    definition:
      'Several similar records could be meant. The agent compares what the user said with each of them and acts on the one that matches in every respect.',
    arises: (trajectory) =>
      wantedRecords(trajectory).some((wanted) => trajectory.records.some((other) => confusable(wanted, other))),
  },
  /** Right tool, right record, a wrong computed value. */
  wrong_value: {
    name: 'compute_action_values',
    definition:
      'An action needs a value that is written nowhere and must be worked out. The agent applies the rules of the policy to the values it has seen and uses the result.',
    arises: (trajectory) => trajectory.needed.some((action) => computedArguments(action, trajectory).length > 0),
  },
  /** Everything was done, but a fact that the user asked for was not told (or a false one was). */
  untold_information: {
    name: 'tell_requested_information',
    definition:
      'The user wants to know something besides what is to be done. The agent tells this fact, as it was found or worked out, before it ends the conversation.',
    arises: ({ facts }) => facts.length > 0,
  },
  /** An identifier was made up instead of asked for. */
  invented_identifier: {
    name: 'ask_for_missing_identifiers',
    definition:
      'An identifier that the tools need is neither given nor to be looked up. The agent asks the user for it and waits for the answer, and never makes one up.',
    arises: (trajectory) => unreachableKinds(trajectory).size > 0,
  },
  /** Nothing was done although the policy permits it. */
  refused_permitted_action: {
    name: 'perform_permitted_actions',
    definition:
      'The policy permits what is asked for. The agent checks the conditions and carries the request out, and does not refuse it.',
    arises: ({ needed }) => needed.length > 0,
  },
} satisfies Record<string, ErrorKind>;

export type ErrorClass = keyof typeof kinds;
export const errorClasses = Object.keys(kinds) as ErrorClass[];
export const capabilities: Record<ErrorClass, ErrorKind> = kinds;

/** The class that a capability is named after; undefined for a name of another analyst. */
export const errorClassOf = (capability: string): ErrorClass | undefined =>
  errorClasses.find((one) => kinds[one].name === capability);

/** The labels of one trajectory for all classes. */
export function errorLabels(o: Parameters<typeof readTrajectory>[0]): Record<ErrorClass, Label> {
  const trajectory = readTrajectory(o);
  const seen = seenErrors(trajectory);
  const label = (one: ErrorClass): Label =>
    !kinds[one].arises(trajectory) ? 'NA' : seen.has(one) ? 'LACKING' : 'PRESENT';
  return Object.fromEntries(errorClasses.map((one) => [one, label(one)])) as Record<ErrorClass, Label>;
}

/**
 * An invented identifier explains whatever follows. Errors in different writes stand side by side. What was left out or left untold
 * counts only where the writes before don't explain it.
 */
function seenErrors(trajectory: Trajectory): ReadonlySet<ErrorClass> {
  if (inventedIdentifier(trajectory)) return new Set(['invented_identifier']);
  const seen = new Set(trajectory.surplus.flatMap((call) => wrongWrite(call, trajectory) ?? []));
  // Success shows that nothing was left out; a trajectory that was cut off never came to its end.
  if (trajectory.passed || !trajectory.endedRegularly) return seen;
  if (omittedAction(trajectory)) seen.add('omitted_action');
  if (refusedPermittedAction(trajectory)) seen.add('refused_permitted_action');
  if (untoldInformation(trajectory)) seen.add('untold_information');
  return seen;
}

const saidDenial = ({ denials, statements, agentText }: Trajectory) =>
  [...denials, ...statements].some((text) => mentions(agentText, text));

/** Writes, and one refusal if there is one to make. */
const outcomesNeeded = ({ needed, statements }: Trajectory) => needed.length + (statements.length > 0 ? 1 : 0);

/** Kinds of identifiers that were needed and that no look-up could give without asking the user. */
function unreachableKinds({ knowledge, firstRequest, calls, needed }: Trajectory): ReadonlySet<string> {
  const reachable = knowledge.reachableKinds(firstRequest);
  const used = [...calls, ...needed].flatMap(knowledge.identifiersIn);
  return new Set(used.flatMap(({ kind }) => (reachable.has(kind) ? [] : [kind])));
}

/** An identifier used before anybody had said one of its kind. After that a wrong one is a slip. */
function inventedIdentifier(trajectory: Trajectory): boolean {
  const { knowledge, calls } = trajectory;
  const unreachable = unreachableKinds(trajectory);
  return calls.some((call) =>
    knowledge
      .identifiersIn(call)
      .some(
        ({ value, kind }) =>
          unreachable.has(kind) && !knowledge.holdsKind(call.userBefore, kind) && !mentions(call.before, value),
      ),
  );
}

/** Those of which no identifier is one of the others'. */
function notAmong(records: readonly ObservedRecord[], others: readonly ObservedRecord[]): ObservedRecord[] {
  const known = new Set(others.flatMap(({ identifiers }) => identifiers));
  return records.filter(({ identifiers }) => !identifiers.some((identifier) => known.has(identifier)));
}

/** The class of a write that was not needed in this form; undefined for a mere slip. */
function wrongWrite(call: Call, trajectory: Trajectory): ErrorClass | undefined {
  const wanted = wantedRecords(trajectory);
  const acted = recordsOf(call, trajectory);
  const unwanted = notAmong(acted, wanted);
  if (unwanted.length > 0)
    return unwanted.some((record) => wanted.some((other) => confusable(record, other))) ? 'wrong_candidate' : undefined;
  if (trajectory.missing.some((action) => differsInComputedValue(call, action, trajectory))) return 'wrong_value';
  const unneeded = notAmong(acted, neededRecords(trajectory)).length > 0;
  // Observations without a schema show no records: there, any write where none was needed.
  const blind = acted.length === 0 && trajectory.needed.length === 0;
  return kinds.forbidden_action.arises(trajectory) && (unneeded || blind) ? 'forbidden_action' : undefined;
}

/** Numeric arguments of a needed write whose value stands neither in the record that it acts on nor in the user's words. */
function computedArguments(action: Action, trajectory: Trajectory): string[] {
  const records = recordsOf(action, trajectory);
  if (records.length === 0) return [];
  const verbatim = new Set([...records.flatMap(({ values }) => values), ...words(trajectory.userText)]);
  return Object.keys(action.arguments).filter((name) => {
    const value = spell(action.arguments[name]);
    return isNumber(value) && !verbatim.has(value);
  });
}

function differsInComputedValue(call: Call, action: Action, trajectory: Trajectory): boolean {
  const computed = computedArguments(action, trajectory);
  return computed.length > 0 && call.name === action.name && sameArguments(call, action, computed);
}

/** Some of the needed outcomes were brought about or tried, others were not even tried. */
function omittedAction(trajectory: Trajectory): boolean {
  const { needed, missing, surplus, attempted } = trajectory;
  const tried = needed.length - missing.length + surplus.length + attempted + (saidDenial(trajectory) ? 1 : 0);
  return tried >= 1 && tried < outcomesNeeded(trajectory);
}

/** Refused, or ended without a try where no way of refusing is known, although the records were seen. */
function refusedPermittedAction(trajectory: Trajectory): boolean {
  const { needed, missing, surplus, attempted, calls, statements, denials } = trajectory;
  const untried = surplus.length + attempted === 0 && missing.length === needed.length;
  const lookedUp = calls.some(({ failed }) => !failed);
  const refused = denials.length === 0 || saidDenial(trajectory);
  // The refusal may have been meant for the other candidate: in doubt not this class.
  const mistaken = kinds.wrong_candidate.arises(trajectory);
  return needed.length > 0 && statements.length === 0 && untried && lookedUp && refused && !mistaken;
}

/** All was done and refused as needed, but a fact is missing from what the user was told, or a false number is in it. */
function untoldInformation(trajectory: Trajectory): boolean {
  const { missing, surplus, statements, facts, denials, agentText, userText } = trajectory;
  if (missing.length > 0 || surplus.length > 0 || facts.length === 0) return false;
  if (!statements.every((text) => mentions(agentText, text))) return false;
  // A refusal that was not due is what went wrong.
  if (statements.length === 0 && denials.some((text) => mentions(agentText, text))) return false;
  const told = words(agentText).filter(isNumber);
  const known = new Set([...facts, ...words(userText)]);
  const isTold = (fact: string) => (isNumber(fact) ? told.includes(fact) : mentions(agentText, fact));
  return !facts.every(isTold) || told.some((number) => !known.has(number));
}
