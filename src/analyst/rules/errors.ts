/**
 * The classes of error that show when what was done is compared with what was needed, the capability that each shows to be lacking, and the
 * label of one trajectory for each: NA without an occasion, LACKING if the class's error is seen and nothing earlier explains it, else PRESENT.
 * Invariants: in doubt PRESENT; names and definitions hold for any target; a name belongs to one class.
 */
import { z } from 'zod';
import type { Label } from '../../domain/capability';
import type { Action } from '../../domain/environment';
import { type Call, type Comparison, isRequested, recordsOf } from './comparison';
import { confusable, isNumber, mentions, type ObservedRecord, spell, type ToolKnowledge, words } from './tools';

export const errorClassSchema = z.enum([
  /** Some of the needed actions were done, others left out. */
  'omitted_action',
  /** A write that the policy forbids: none was needed there. */
  'forbidden_action',
  /** The right tool on the wrong one of several similar records. */
  'wrong_candidate',
  /** Right tool, right record, a wrong computed value. */
  'wrong_value',
  /** Everything was done, but a fact that the user asked for was not told (or a false one was). */
  'untold_information',
  /** An identifier was made up instead of asked for. */
  'invented_identifier',
  /** Nothing was done although the policy permits it. */
  'refused_permitted_action',
]);
export type ErrorClass = z.infer<typeof errorClassSchema>;

export const capabilities: Record<ErrorClass, { name: string; definition: string }> = {
  omitted_action: {
    name: 'complete_all_requested_actions',
    definition:
      'The request holds several things to do. The agent carries out each of them, or says why one is not possible, before it ends the conversation.',
  },
  forbidden_action: {
    name: 'refuse_forbidden_actions',
    definition:
      'What is asked for is not permitted by the policy in the present state. The agent checks the conditions first, leaves the data unchanged and tells the user that it is not possible.',
  },
  wrong_candidate: {
    name: 'select_matching_record',
    definition:
      'Several similar records could be meant. The agent compares what the user said with each of them and acts on the one that matches in every respect.',
  },
  wrong_value: {
    name: 'compute_action_values',
    definition:
      'An action needs a value that is written nowhere and must be worked out. The agent applies the rules of the policy to the values it has seen and uses the result.',
  },
  untold_information: {
    name: 'tell_requested_information',
    definition:
      'The user wants to know something besides what is to be done. The agent tells this fact, as it was found or worked out, before it ends the conversation.',
  },
  invented_identifier: {
    name: 'ask_for_missing_identifiers',
    definition:
      'An identifier that the tools need is neither given nor to be looked up. The agent asks the user for it and waits for the answer, and never makes one up.',
  },
  refused_permitted_action: {
    name: 'perform_permitted_actions',
    definition:
      'The policy permits what is asked for. The agent checks the conditions and carries the request out, and does not refuse it.',
  },
};

const classes = new Map(errorClassSchema.options.map((errorClass) => [capabilities[errorClass].name, errorClass]));

/** The class that a capability is named after; undefined for a name of another analyst. */
export const errorClassOf = (capability: string): ErrorClass | undefined => classes.get(capability);

export interface Trajectory {
  comparison: Comparison;
  knowledge: ToolKnowledge;
  /** Statements known to refuse a request: from the policy's rules. */
  denials: readonly string[];
}

/** The labels of one trajectory for all classes. */
export function errorLabels(trajectory: Trajectory): Record<ErrorClass, Label> {
  const seen = seenErrors(trajectory);
  const label = (errorClass: ErrorClass): Label =>
    !occasions[errorClass](trajectory) ? 'NA' : seen.has(errorClass) ? 'LACKING' : 'PRESENT';
  return Object.fromEntries(errorClassSchema.options.map((one) => [one, label(one)])) as Record<ErrorClass, Label>;
}

const saidDenial = ({ comparison, denials }: Trajectory) =>
  [...denials, ...comparison.statements].some((text) => mentions(comparison.agentText, text));

/** Writes, and one refusal if there is one to make. */
const outcomesNeeded = ({ needed, statements }: Comparison) => needed.length + (statements.length > 0 ? 1 : 0);

/** Whether the trajectory's task gives a class the chance to go wrong. */
const occasions: Record<ErrorClass, (trajectory: Trajectory) => boolean> = {
  omitted_action: ({ comparison }) => outcomesNeeded(comparison) >= 2,
  forbidden_action: ({ comparison }) => comparison.statements.length > 0 || comparison.needed.length === 0,
  wrong_candidate: (trajectory) =>
    wantedRecords(trajectory).some((wanted) =>
      trajectory.comparison.records.some((other) => confusable(wanted, other)),
    ),
  wrong_value: (trajectory) =>
    trajectory.comparison.needed.some((action) => computedArguments(action, trajectory).length > 0),
  untold_information: ({ comparison }) => comparison.facts.length > 0,
  invented_identifier: (trajectory) => unreachableKinds(trajectory).size > 0,
  refused_permitted_action: ({ comparison }) => comparison.needed.length > 0,
};

/**
 * An invented identifier explains whatever follows. Errors in different writes stand side by side. What was left out or left untold
 * counts only where the writes before don't explain it.
 */
function seenErrors(trajectory: Trajectory): ReadonlySet<ErrorClass> {
  const { comparison } = trajectory;
  if (inventedIdentifier(trajectory)) return new Set(['invented_identifier']);
  const seen = new Set(comparison.surplus.flatMap((call) => wrongWrite(call, trajectory) ?? []));
  // Success shows that nothing was left out; a trajectory that was cut off never came to its end.
  if (comparison.passed || !comparison.endedRegularly) return seen;
  if (omittedAction(trajectory)) seen.add('omitted_action');
  if (refusedPermittedAction(trajectory)) seen.add('refused_permitted_action');
  if (untoldInformation(trajectory)) seen.add('untold_information');
  return seen;
}

/** Kinds of identifiers that were needed and that no look-up could give without asking the user. */
function unreachableKinds({ comparison, knowledge }: Trajectory): ReadonlySet<string> {
  const reachable = knowledge.reachableKinds(comparison.firstRequest);
  const used = [...comparison.calls, ...comparison.needed].flatMap((action) => identifiersOf(action, knowledge));
  return new Set(used.flatMap(({ kind }) => (reachable.has(kind) ? [] : [kind])));
}

/** An identifier used before anybody had said one of its kind. After that a wrong one is a slip. */
function inventedIdentifier(trajectory: Trajectory): boolean {
  const { comparison, knowledge } = trajectory;
  const unreachable = unreachableKinds(trajectory);
  return comparison.calls.some((call) =>
    identifiersOf(call, knowledge).some(
      ({ value, kind }) =>
        unreachable.has(kind) && !knowledge.holdsKind(call.userBefore, kind) && !mentions(call.before, value),
    ),
  );
}

/** The identifiers that it was given: an argument that was left out is none. */
const identifiersOf = ({ name, arguments: given }: Action, knowledge: ToolKnowledge) =>
  knowledge.identifierArguments(name).flatMap(({ argument, kind }) => {
    const value = given[argument];
    return value === undefined || value === null ? [] : [{ kind, value: spell(value) }];
  });

/** The records that the needed writes act on or that the user named. */
function wantedRecords({ comparison, knowledge }: Trajectory): ObservedRecord[] {
  const needed = comparison.needed.flatMap((action) => recordsOf({ action, comparison, knowledge }));
  return [...needed, ...comparison.records.filter((record) => isRequested(record, comparison))];
}

/** The class of a write that was not needed in this form; undefined for a mere slip. */
function wrongWrite(call: Call, trajectory: Trajectory): ErrorClass | undefined {
  const { comparison, knowledge } = trajectory;
  const wanted = wantedRecords(trajectory);
  const identifiers = (records: ObservedRecord[]) => new Set(records.flatMap((record) => record.identifiers));
  const wantedIds = identifiers(wanted);
  const acted = recordsOf({ action: call, comparison, knowledge });
  const unwanted = acted.filter((record) => !record.identifiers.some((identifier) => wantedIds.has(identifier)));
  if (unwanted.length > 0) {
    return unwanted.some((record) => wanted.some((other) => confusable(record, other))) ? 'wrong_candidate' : undefined;
  }
  if (comparison.missing.some((action) => differsInComputedValue(call, action, trajectory))) return 'wrong_value';
  const neededIds = identifiers(comparison.needed.flatMap((action) => recordsOf({ action, comparison, knowledge })));
  const unneeded = acted.some((record) => !record.identifiers.some((identifier) => neededIds.has(identifier)));
  // Observations without a schema show no records: there, any write where none was needed.
  const blind = acted.length === 0 && comparison.needed.length === 0;
  return occasions.forbidden_action(trajectory) && (unneeded || blind) ? 'forbidden_action' : undefined;
}

/** Numeric arguments of a needed write whose value stands neither in the record that it acts on nor in the user's words. */
function computedArguments(action: Action, { comparison, knowledge }: Trajectory): string[] {
  const records = recordsOf({ action, comparison, knowledge });
  if (records.length === 0) return [];
  const verbatim = new Set([...records.flatMap((record) => record.values), ...words(comparison.userText)]);
  return Object.keys(action.arguments).filter((name) => {
    const value = spell(action.arguments[name]);
    return isNumber(value) && !verbatim.has(value);
  });
}

function differsInComputedValue(call: Call, action: Action, trajectory: Trajectory): boolean {
  const computed = computedArguments(action, trajectory);
  const names = new Set([...Object.keys(action.arguments), ...Object.keys(call.arguments)]);
  const others = [...names].filter((name) => !computed.includes(name));
  return (
    computed.length > 0 &&
    call.name === action.name &&
    others.every((name) => spell(call.arguments[name]) === spell(action.arguments[name]))
  );
}

/** Some of the needed outcomes were brought about or tried, others were not even tried. */
function omittedAction(trajectory: Trajectory): boolean {
  const { comparison } = trajectory;
  const { needed, missing, surplus, attempted } = comparison;
  const tried = needed.length - missing.length + surplus.length + attempted + (saidDenial(trajectory) ? 1 : 0);
  return tried >= 1 && tried < outcomesNeeded(comparison);
}

/** Refused, or ended without a try where no way of refusing is known, although the records were seen. */
function refusedPermittedAction(trajectory: Trajectory): boolean {
  const { comparison, denials } = trajectory;
  const untried =
    comparison.surplus.length + comparison.attempted === 0 && comparison.missing.length === comparison.needed.length;
  const lookedUp = comparison.calls.some((call) => !call.failed);
  const refused = denials.length === 0 || saidDenial(trajectory);
  // The refusal may have been meant for the other candidate: in doubt not this class.
  const mistaken = occasions.wrong_candidate(trajectory);
  return (
    comparison.needed.length > 0 && comparison.statements.length === 0 && untried && lookedUp && refused && !mistaken
  );
}

/** All was done and refused as needed, but a fact is missing from what the user was told, or a false number is in it. */
function untoldInformation({ comparison, denials }: Trajectory): boolean {
  const { missing, surplus, statements, facts, agentText, userText } = comparison;
  if (missing.length > 0 || surplus.length > 0 || facts.length === 0) return false;
  if (!statements.every((text) => mentions(agentText, text))) return false;
  // A refusal that was not due is what went wrong.
  if (statements.length === 0 && denials.some((text) => mentions(agentText, text))) return false;
  const told = words(agentText).filter(isNumber);
  const known = new Set([...facts, ...words(userText)]);
  const isTold = (fact: string) => (isNumber(fact) ? told.includes(fact) : mentions(agentText, fact));
  return !facts.every(isTold) || told.some((number) => !known.has(number));
}
