/**
 * analysis.json: what was found in conversations from elsewhere (docs/conversations.md). Invariants: it is complete, so that page and terminal are
 * made of it alone; conversations are called as in the user's files, and message numbers are indexes into their messages.
 */
import type { Analysis as Asked } from '../../analyst/steps';
import type { SelectionRule } from '../../domain/campaign';
import { beginningOf, type FailureOrigin, type Label } from '../../domain/capability';
import type { Budget, Spent } from '../../domain/endpoints';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { excerpt } from '../../report/build/quotes';
import { selectionOf } from '../../report/build/selection';
import type { ReportedCitation, ReportedSelection } from '../../report/capability-model';
import type { Conversations } from './conversations';
import type { AnalysisResult } from './steps';

export interface LackedCapability {
  capability: string;
  /** The label of most passes. */
  label: Label;
  /** Passes that say LACKING, of those that looked at it. */
  votes: number;
  passes: number;
  /** The message that most of them name, of several the earliest. */
  message?: number | undefined;
  reasons: { pass: number; reason: string; message?: number | undefined }[];
}

export interface FailureBeginning extends FailureOrigin {
  votes: number;
  /** The message and its neighbours. */
  context: ReportedCitation['context'];
}

export interface AnalysedFailure {
  conversation: string;
  task: string;
  reward: number;
  /** Number of its messages. */
  messages: number;
  /** The capabilities that some pass calls LACKING, most votes first. */
  lacking: LackedCapability[];
  /** The message that most passes name, of those that blame whom (`of`) most blame; of several the earliest. */
  begins?: FailureBeginning | undefined;
  /** Selected capabilities that most passes label LACKING, else a fault of another, else NOT_EXPLAINED; empty where no pass labeled it. */
  explainedBy: string[];
}

export const FAULTS = { environment: 'fault of the environment', user: 'fault of the user' };
export const NOT_EXPLAINED = 'not explained by a capability';

export interface Analysis {
  name: string;
  madeAt: string;
  files: string[];
  analyst: { kind: string; version: string; model: string };
  conversations: Conversations['counts'];
  /** What was left out of the files, or is not known of them. */
  notes: string[];
  /** As in a report; each `rollout` is a conversation. */
  selection: ReportedSelection;
  failures: AnalysedFailure[];
  budget: Budget;
  /** On everything of this name, also by earlier runs. */
  spent: Spent[];
}

export async function buildAnalysis(
  o: Pick<Analysis, 'name' | 'files' | 'analyst' | 'budget' | 'spent'> & {
    /** How it was asked. */
    analysis: Pick<Asked, 'store' | 'rollouts'>;
    rule: SelectionRule;
    conversations: Conversations;
    result: AnalysisResult;
  },
): Promise<Analysis> {
  const { rule, name, files, analyst, budget, spent } = o;
  const { rollouts: records, ids, counts: conversations, notes } = o.conversations;
  const { selection: result, passes } = o.result;
  const { store, rollouts } = o.analysis;
  const selection = await selectionOf({ store, rollouts, records, result, rule });
  const failures = records.filter((rollout) => !isSuccess(rollout)).map(failureIn(passes, selection));
  const madeAt = new Date().toISOString();
  const found = withNames({ selection, failures }, ids);
  return { name, madeAt, files, analyst, conversations, notes, ...found, budget, spent };
}

/** With the files' names of the conversations, which stand as ids in values and as keys of records. */
export function withNames<Value>(value: Value, ids: ReadonlyMap<string, string>): Value {
  const named = (inner: unknown): unknown => {
    if (typeof inner === 'string') return ids.get(inner) ?? inner;
    if (Array.isArray(inner)) return inner.map(named);
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, one]) => [ids.get(key) ?? key, named(one)]));
  };
  return named(value) as Value;
}

/** Characters of a message: there are as many excerpts as failures. */
const CONTEXT = { neighbours: 2, longest: 1500 };

function failureIn(passes: AnalysisResult['passes'], { candidates }: ReportedSelection) {
  const selected = new Set(candidates.flatMap((one) => (one.selected ? [one.name] : [])));
  const readings = readingsOf(passes);

  /** For what a failed conversation is called LACKING, by whom and why. */
  const lackedBy = (key: string): AnalysedFailure['lacking'] =>
    [...readings]
      .flatMap(([capability, all]) => {
        const own = all.get(key) ?? [];
        const { lacking, message } = lackingIn(own);
        if (lacking.length === 0) return [];
        const reasons = lacking.flatMap(({ pass, reason, message: at }) =>
          // Numbered as it was asked for: passes that failed leave gaps.
          reason === undefined ? [] : [{ pass: Number(pass), reason, message: at }],
        );
        return [{ capability, label: majorityOf(own), votes: lacking.length, passes: own.length, message, reasons }];
      })
      .sort((a, b) => b.votes - a.votes || (a.capability < b.capability ? -1 : 1));

  const beginningIn = ({ key, messages }: ScoredRollout): AnalysedFailure['begins'] => {
    const begins = beginningOf(passes.flatMap(({ failures }) => failures?.[key] ?? []));
    if (!begins) return undefined;
    const { of, message, votes, reason } = begins;
    // Without the policy, which is long and the same everywhere.
    const isShown = (one: { role: string; message: number }) => one.role !== 'system' || one.message === message;
    return { of, message, votes, reason, context: excerpt(messages, message, CONTEXT).filter(isShown) };
  };

  const explanationsOf = ({ begins, lacking }: Pick<AnalysedFailure, 'begins' | 'lacking'>): string[] => {
    if (!begins) return [];
    if (begins.of !== 'agent') return [FAULTS[begins.of]];
    const names = lacking.filter(({ capability, label }) => label === 'LACKING' && selected.has(capability));
    return names.length > 0 ? names.map(({ capability }) => capability) : [NOT_EXPLAINED];
  };

  return (rollout: ScoredRollout): AnalysedFailure => {
    const [lacking, begins] = [lackedBy(rollout.key), beginningIn(rollout)];
    return {
      ...{ conversation: rollout.key, task: rollout.task, reward: rollout.reward, messages: rollout.messages.length },
      ...{ lacking, begins, explainedBy: explanationsOf({ begins, lacking }) },
    };
  };
}
