/**
 * The classes of error that show when what was done is compared with what was needed, the capability that each shows to be lacking, and the
 * label of one trajectory for each: NA without an occasion, LACKING if the class's error is seen and nothing earlier explains it, else PRESENT:
 * in doubt PRESENT.
 */
import type { Action, Label, ScoredRollout } from 'trace-campaign/plugin';
import { TEXTS } from '../target/tasks';
import {
  accountIn,
  actedOn,
  type Call,
  confusable,
  holdsAccount,
  isNumber,
  type Listed,
  mentions,
  neededItems,
  readTrajectory,
  sameArguments,
  type Trajectory,
  wantedItems,
  words,
} from './trajectory';

interface ErrorKind {
  definition: string;
  /** Returns true if the trajectory's task gives a chance to make this error. */
  arises: (trajectory: Trajectory) => boolean;
}

/** Keyed by the capability that each shows to be lacking. */
export const errorKinds = {
  /** Some of the needed actions were done, others left out. */
  complete_all_requested_actions: {
    definition:
      'The request holds several things to do. The agent carries out each of them, or says why one is not possible, before it ends the conversation.',
    arises: (trajectory) => outcomesNeeded(trajectory) >= 2,
  },
  /** A write that the policy forbids: none was needed there. */
  refuse_forbidden_actions: {
    definition:
      'What is asked for is not permitted by the policy in the present state. The agent checks the conditions first, leaves the data unchanged and tells the user that it is not possible.',
    arises: ({ mustRefuse, needed }) => mustRefuse || needed.length === 0,
  },
  /** The right tool on the wrong one of several similar records. */
  select_matching_record: {
    definition:
      'Several similar records could be meant. The agent compares what the user said with each of them and acts on the one that matches in every respect.',
    arises: (trajectory) =>
      wantedItems(trajectory).some((wanted) => trajectory.listed.some((other) => confusable(wanted, other))),
  },
  /** Right tool, right record, a wrong computed value. */
  compute_action_values: {
    definition:
      'An action needs a value that is written nowhere and must be worked out. The agent applies the rules of the policy to the values it has seen and uses the result.',
    arises: (trajectory) => trajectory.needed.some((action) => isComputed(action, trajectory)),
  },
  /** Everything was done, but a requested fact was not stated, or a false one was. */
  tell_requested_information: {
    definition:
      'The user wants to know something besides what is to be done. The agent tells this fact, as it was found or worked out, before it ends the conversation.',
    arises: ({ amounts }) => amounts.length > 0,
  },
  /** An identifier was made up instead of asked for. */
  ask_for_missing_identifiers: {
    definition:
      'An identifier that the tools need is neither given nor to be looked up. The agent asks the user for it and waits for the answer, and never makes one up.',
    arises: (trajectory) => needsToAsk(trajectory),
  },
  /** Nothing was done although the policy permits it. */
  perform_permitted_actions: {
    definition:
      'The policy permits what is asked for. The agent checks the conditions and carries the request out, and does not refuse it.',
    arises: ({ needed }) => needed.length > 0,
  },
} satisfies Record<string, ErrorKind>;

export type Capability = keyof typeof errorKinds;
export const capabilities = Object.keys(errorKinds) as Capability[];

/** The labels of one rollout for all classes. */
export function errorLabels(rollout: ScoredRollout): Record<Capability, Label> {
  const trajectory = readTrajectory(rollout);
  const seen = seenErrors(trajectory);
  const label = (one: Capability): Label =>
    !errorKinds[one].arises(trajectory) ? 'NA' : seen.has(one) ? 'LACKING' : 'PRESENT';
  return Object.fromEntries(capabilities.map((one) => [one, label(one)])) as Record<Capability, Label>;
}

/**
 * An invented identifier explains whatever follows. Errors in different writes stand side by side. What was left out or left untold
 * counts only where the writes before don't explain it.
 */
function seenErrors(trajectory: Trajectory): ReadonlySet<Capability> {
  if (inventedIdentifier(trajectory)) return new Set(['ask_for_missing_identifiers']);
  const seen = new Set<Capability>(trajectory.surplus.flatMap((call) => wrongWrite(call, trajectory) ?? []));
  // Success shows that nothing was left out; a trajectory that was cut off is incomplete.
  if (trajectory.passed || !trajectory.endedRegularly) return seen;
  if (omittedAction(trajectory)) seen.add('complete_all_requested_actions');
  if (refusedPermittedAction(trajectory)) seen.add('perform_permitted_actions');
  if (untoldInformation(trajectory)) seen.add('tell_requested_information');
  return seen;
}

const saidDenial = ({ agentText }: Trajectory) => mentions(agentText, TEXTS.denial);

/** Writes, and one refusal if there is one to make. */
const outcomesNeeded = ({ needed, mustRefuse }: Trajectory) => needed.length + (mustRefuse ? 1 : 0);

/** An account was needed that the first request does not name: no look-up gives one. */
const needsToAsk = ({ firstRequest, calls, needed }: Trajectory): boolean =>
  !holdsAccount(firstRequest) && [...calls, ...needed].some((action) => accountIn(action) !== undefined);

/** An account used before anybody had said one. After that a wrong one is a slip. */
const inventedIdentifier = (trajectory: Trajectory): boolean =>
  needsToAsk(trajectory) &&
  trajectory.calls.some((call) => {
    const account = accountIn(call);
    return account !== undefined && !holdsAccount(call.userBefore) && !mentions(call.before, account);
  });

/** Returns the items whose id is not among the others. */
const notAmong = (items: readonly Listed[], others: readonly Listed[]): Listed[] =>
  items.filter(({ id }) => !others.some((other) => other.id === id));

/** The class of a write that was not needed in this form; undefined for a mere slip. */
function wrongWrite(call: Call, trajectory: Trajectory): Capability | undefined {
  const wanted = wantedItems(trajectory);
  const acted = actedOn(call, trajectory);
  const unwanted = notAmong(acted, wanted);
  if (unwanted.length > 0)
    return unwanted.some((item) => wanted.some((other) => confusable(item, other)))
      ? 'select_matching_record'
      : undefined;
  if (trajectory.missing.some((action) => differsInRefund(call, action, trajectory))) return 'compute_action_values';
  const unneeded = notAmong(acted, neededItems(trajectory)).length > 0;
  // A write that acts on no listed item, where none was needed.
  const blind = acted.length === 0 && trajectory.needed.length === 0;
  return errorKinds.refuse_forbidden_actions.arises(trajectory) && (unneeded || blind)
    ? 'refuse_forbidden_actions'
    : undefined;
}

/** Returns true if a needed write has a refund that is not the listed price of its item. */
function isComputed(action: Action, trajectory: Trajectory): boolean {
  const items = actedOn(action, trajectory);
  const { refund } = action.arguments;
  return items.length > 0 && refund !== undefined && !items.some(({ price }) => price === String(refund));
}

const differsInRefund = (call: Call, action: Action, trajectory: Trajectory): boolean =>
  isComputed(action, trajectory) && call.name === action.name && sameArguments(call, action, 'refund');

/** Some of the needed outcomes were brought about or tried, others were not even tried. */
function omittedAction(trajectory: Trajectory): boolean {
  const { needed, missing, surplus, attempted } = trajectory;
  const tried = needed.length - missing.length + surplus.length + attempted + (saidDenial(trajectory) ? 1 : 0);
  return tried >= 1 && tried < outcomesNeeded(trajectory);
}

/** Refused, although the items were seen. */
function refusedPermittedAction(trajectory: Trajectory): boolean {
  const { needed, missing, surplus, attempted, calls, mustRefuse } = trajectory;
  const untried = surplus.length + attempted === 0 && missing.length === needed.length;
  const lookedUp = calls.some(({ failed }) => !failed);
  // The refusal may have been meant for the other candidate: in doubt not this class.
  const mistaken = errorKinds.select_matching_record.arises(trajectory);
  return needed.length > 0 && !mustRefuse && untried && lookedUp && saidDenial(trajectory) && !mistaken;
}

/** Returns true if all was done and refused as needed, but the messages to the user lack an amount or hold a false number. */
function untoldInformation(trajectory: Trajectory): boolean {
  const { missing, surplus, mustRefuse, amounts, agentText } = trajectory;
  if (missing.length > 0 || surplus.length > 0 || amounts.length === 0) return false;
  // A refusal that was not due, or that is missing, is what went wrong.
  if (saidDenial(trajectory) !== mustRefuse) return false;
  const told = words(agentText).filter(isNumber);
  return !amounts.every((amount) => told.includes(amount)) || told.some((number) => !amounts.includes(number));
}
