/**
 * analysis.json: what was found in conversations from elsewhere (docs/conversations.md). Invariants: it is complete, so that page and terminal are
 * made of it and of people's labels alone; conversations are called as in the user's files, and message numbers are indexes into their messages.
 */
import { z } from 'zod';
import type { Analysis as Asked } from '../../analyst/steps';
import type { SelectionRule } from '../../domain/campaign';
import { beginningOf, failureOriginSchema } from '../../domain/capability';
import { budgetSchema, spentSchema } from '../../domain/endpoints';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { labelNames, lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { excerpt } from '../../report/build/quotes';
import { selectionOf } from '../../report/build/selection';
import { reportedCitationSchema, reportedSelectionSchema } from '../../report/capability-model';
import type { Conversations } from './conversations';
import type { AnalysisResult } from './steps';

const count = z.number().int().nonnegative();

const lackedSchema = z.strictObject({
  capability: z.string(),
  /** What most passes say. */
  label: z.enum(labelNames),
  /** Passes that say LACKING, of those that looked at it. */
  votes: count,
  passes: count,
  /** The message that most of them name, of several the earliest. */
  message: count.optional(),
  reasons: z.array(z.strictObject({ pass: count, reason: z.string(), message: count.optional() })),
});

const failureSchema = z.strictObject({
  conversation: z.string(),
  task: z.string(),
  reward: z.number(),
  /** How many it has. */
  messages: count,
  /** For what some pass calls it LACKING, most votes first. */
  lacking: z.array(lackedSchema),
  /** The message that most passes name, of those that blame whom (`of`) most blame; of several the earliest. */
  begins: z
    .strictObject({
      ...failureOriginSchema.shape,
      votes: count,
      /** The message and its neighbours. */
      context: reportedCitationSchema.shape.context,
    })
    .optional(),
});

export const analysisSchema = z.strictObject({
  name: z.string(),
  madeAt: z.string(),
  files: z.array(z.string()),
  analyst: z.strictObject({ kind: z.string(), version: z.string(), model: z.string() }),
  conversations: z.strictObject({ total: count, failed: count, passed: count, tokens: count }),
  /** What was left out of the files, or is not known of them. */
  notes: z.array(z.string()),
  /** As in a report; each `rollout` is a conversation. */
  selection: reportedSelectionSchema,
  failures: z.array(failureSchema),
  budget: budgetSchema,
  /** On everything of this name, also by earlier runs. */
  spent: z.array(spentSchema),
});
export type Analysis = z.infer<typeof analysisSchema>;
export type AnalysedFailure = Analysis['failures'][number];

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
  const failures = records.filter((rollout) => !isSuccess(rollout)).map(failureIn(passes));
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

function failureIn(passes: AnalysisResult['passes']) {
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

  return (rollout: ScoredRollout): AnalysedFailure => ({
    conversation: rollout.key,
    task: rollout.task,
    reward: rollout.reward,
    messages: rollout.messages.length,
    lacking: lackedBy(rollout.key),
    begins: beginningIn(rollout),
  });
}
