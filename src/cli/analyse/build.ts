/**
 * analysis.json from what the steps found. Invariants: conversations are called as in the user's files, everywhere; message numbers are indexes
 * into a conversation's messages as they stand in the file, and one that no message has is left out.
 */
import type { SelectionRule } from '../../domain/campaign';
import { beginningOf, type Citation, commonest, type LabelPass } from '../../domain/capability';
import type { Budget, Spent } from '../../domain/endpoints';
import type { Identity } from '../../domain/kinds';
import type { Message } from '../../domain/messages';
import type { ReportedMessage } from '../../report/capability-model';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { agreementOf } from '../../domain/selection';
import { quotedMessage } from '../../report/build/quotes';
import type { Conversations } from './conversations';
import type { AnalysedCapability, AnalysedFailure, Analysis, Cited, LackedCapability } from './result';
import type { AnalysisResult } from './steps';
import { type CapabilityVotes, majority, type Votes, votesOf } from './votes';

interface BuildInput {
  name: string;
  files: readonly string[];
  /** Its kind and version, and the model that it asks. */
  analyst: Pick<Identity, 'kind' | 'version'> & { model: string };
  conversations: Conversations;
  rule: SelectionRule;
  result: AnalysisResult;
  budget: Budget;
  spent: readonly Spent[];
}

export function buildAnalysis(input: BuildInput): Analysis {
  const { name, files, analyst, conversations, rule, result, budget, spent } = input;
  const { passes, failedPasses, selection, discovery } = result;
  const votes = votesOf(passes);
  return {
    name,
    madeAt: new Date().toISOString(),
    files: [...files],
    analyst: { kind: analyst.kind, version: analyst.version, model: analyst.model },
    conversations: conversations.counts,
    notes: conversations.notes,
    rule,
    passes: passes.length,
    failedPasses,
    ...(selection.reason !== undefined && { reason: selection.reason }),
    capabilities: capabilitiesOf({ result, conversations, votes }),
    failures: failuresOf({ ...conversations, passes, votes }),
    faults: discovery.faults.map((fault) => ({ ...fault, citations: citedIn(conversations, fault.citations) })),
    budget,
    spent: [...spent],
  };
}

type Named = Pick<Conversations, 'rollouts' | 'ids'>;

/** What the analyst cites; a step that no conversation has is left out. */
function citedIn({ rollouts, ids }: Named, citations: readonly Citation[]): Cited[] {
  const byKey = new Map(rollouts.map((rollout): [string, ScoredRollout] => [rollout.key, rollout]));
  return citations.flatMap(({ rollout: key, message, says }) => {
    const rollout = byKey.get(key);
    if (!rollout || message >= rollout.messages.length) return [];
    const outcome = isSuccess(rollout) ? 'passed' : 'failed';
    return [{ conversation: ids.get(key) ?? key, outcome, message, says, context: excerpt(rollout.messages, message) }];
  });
}

/** In the selection's order. */
function capabilitiesOf(o: {
  result: AnalysisResult;
  conversations: Conversations;
  votes: CapabilityVotes;
}): AnalysedCapability[] {
  const { result, conversations, votes } = o;
  const agreement = agreementOf(result.passes);
  return result.selection.capabilities.map(({ name, selected, votes: count, passes, coverage, delta }) => {
    const candidate = result.discovery.candidates.find((one) => one.name === name);
    const alpha = agreement[name]?.alpha;
    const lacking = conversations.rollouts.filter((rollout) => {
      const own = votes.get(name)?.get(rollout.key);
      return !isSuccess(rollout) && own !== undefined && majority(own) === 'LACKING';
    });
    return {
      name,
      definition: candidate?.definition ?? '',
      selected,
      votes: count,
      passes,
      coverage,
      delta,
      ...(alpha !== undefined && { agreement: alpha }),
      lacking: lacking.map(({ key }) => conversations.ids.get(key) ?? key),
      citations: citedIn(conversations, candidate?.citations ?? []),
    };
  });
}

interface FailuresInput extends Named {
  passes: readonly LabelPass[];
  votes: CapabilityVotes;
}

/** What each failed conversation lacks, and where its failure begins. */
export const failuresOf = (input: FailuresInput): AnalysedFailure[] =>
  input.rollouts.filter((rollout) => !isSuccess(rollout)).map((rollout) => failureOf(rollout, input));

function failureOf(rollout: ScoredRollout, { ids, passes, votes }: FailuresInput): AnalysedFailure {
  const { key, task, reward, messages } = rollout;
  const lacking = [...votes]
    .flatMap(([capability, own]) => lackedIn({ rollout, passes, capability, votes: own.get(key) }) ?? [])
    .sort((a, b) => b.votes - a.votes || (a.capability < b.capability ? -1 : 1));
  const origins = passes.flatMap(({ failures }) => failures?.[key] ?? []);
  const begins = beginningOf(origins.filter(({ message }) => message < messages.length));
  return {
    conversation: ids.get(key) ?? key,
    task,
    reward,
    messages: messages.length,
    lacking,
    ...(begins && {
      begins: {
        message: begins.message,
        votes: begins.votes,
        reason: begins.reason,
        of: begins.of,
        context: excerpt(messages, begins.message),
      },
    }),
  };
}

/** Undefined where no pass says LACKING. */
function lackedIn(o: {
  rollout: ScoredRollout;
  passes: readonly LabelPass[];
  capability: string;
  votes: Votes | undefined;
}): LackedCapability | undefined {
  const { rollout, passes, capability, votes } = o;
  if (!votes || votes.LACKING === 0) return undefined;
  const reasons = passes.flatMap((pass) => {
    const given = pass.reasons?.[capability]?.[rollout.key];
    if (!given || !pass.labels[capability]?.lacking_failed.includes(rollout.key)) return [];
    const message = given.message !== undefined && given.message < rollout.messages.length && given.message;
    // Numbered as it was asked for: passes that failed leave gaps.
    return [{ pass: Number(pass.attempt), reason: given.reason, ...(message !== false && { message }) }];
  });
  const step = commonest(reasons.flatMap(({ message }) => message ?? []));
  return {
    capability,
    votes: votes.LACKING,
    passes: votes.LACKING + votes.PRESENT + votes.NA,
    ...(step && { message: step.message }),
    reasons,
  };
}

const NEIGHBOURS = 2;
/** Characters of a message: there are as many excerpts as failures. */
const LONGEST = 1500;

/** A message and its neighbours, without the policy, which is long and the same everywhere. */
function excerpt(messages: readonly Message[], around: number): ReportedMessage[] {
  const from = Math.max(0, around - NEIGHBOURS);
  return messages
    .slice(from, around + NEIGHBOURS + 1)
    .map((message, n) => quotedMessage(message, from + n, LONGEST))
    .filter(({ role, message }) => role !== 'system' || message === around);
}
