/**
 * analysis.json: what was found in conversations from elsewhere (docs/conversations.md). Invariants: it is complete, so that page and terminal are
 * made of it and of people's labels alone; conversations are called as in the user's files, and message numbers are indexes into their messages.
 */
import { z } from 'zod';
import { selectionRuleSchema } from '../../domain/campaign';
import { beginningOf, type Citation, failureOriginSchema } from '../../domain/capability';
import { budgetSchema, spentSchema } from '../../domain/endpoints';
import type { Message } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { agreementOf, lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { quotedMessage } from '../../report/build/quotes';
import { type ReportedMessage, reportedCitationSchema } from '../../report/capability-model';
import type { Conversations } from './conversations';
import type { AnalysisResult } from './steps';

const count = z.number().int().nonnegative();
const meanStd = z.strictObject({ mean: z.number(), std: z.number() });
/** The message that is meant, and its neighbours. */
const contextSchema = reportedCitationSchema.shape.context;

const citedSchema = z.strictObject({
  conversation: z.string(),
  outcome: z.enum(['failed', 'passed']),
  message: count,
  says: z.string(),
  context: contextSchema,
});

const lackedSchema = z.strictObject({
  capability: z.string(),
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
  /** Most votes first. */
  lacking: z.array(lackedSchema),
  /** The message that most passes name, of those that blame whom (`of`) most blame; of several the earliest. */
  begins: z
    .strictObject({ ...failureOriginSchema.shape, message: count, votes: count, context: contextSchema })
    .optional(),
});

const capabilitySchema = z.strictObject({
  name: z.string(),
  definition: z.string(),
  selected: z.boolean(),
  votes: count,
  passes: count,
  coverage: meanStd,
  delta: meanStd,
  /** Krippendorff's alpha of the passes; absent where it is not defined (they all say the same of everything). */
  agreement: z.number().optional(),
  /** Failed conversations that most passes call LACKING. */
  lacking: z.array(z.string()),
  citations: z.array(citedSchema),
});

export const analysisSchema = z.strictObject({
  name: z.string(),
  madeAt: z.string(),
  files: z.array(z.string()),
  analyst: z.strictObject({ kind: z.string(), version: z.string(), model: z.string() }),
  conversations: z.strictObject({ total: count, failed: count, passed: count, tokens: count }),
  /** What was left out of the files, or is not known of them. */
  notes: z.array(z.string()),
  rule: selectionRuleSchema,
  /** Passes that were made; those that failed are left out. */
  passes: count,
  failedPasses: z.array(z.strictObject({ pass: count, reason: z.string() })),
  /** Why nothing is selected, where nothing is. */
  reason: z.string().optional(),
  /** In the selection's order. */
  capabilities: z.array(capabilitySchema),
  failures: z.array(failureSchema),
  /** What failed for no fault of the agent's. */
  faults: z.array(
    z.strictObject({ of: z.enum(['environment', 'user']), what: z.string(), citations: z.array(citedSchema) }),
  ),
  budget: budgetSchema,
  /** On everything of this name, also by earlier runs. */
  spent: z.array(spentSchema),
});
export type Analysis = z.infer<typeof analysisSchema>;
export type AnalysedCapability = Analysis['capabilities'][number];
export type AnalysedFailure = Analysis['failures'][number];
export type Cited = z.infer<typeof citedSchema>;

export function buildAnalysis(
  o: Pick<Analysis, 'name' | 'files' | 'analyst' | 'rule' | 'budget' | 'spent'> & {
    conversations: Conversations;
    result: AnalysisResult;
  },
): Analysis {
  const { rollouts, ids, counts, notes } = o.conversations;
  const { passes, failedPasses, selection, discovery } = o.result;
  const nameOf = (key: string) => ids.get(key) ?? key;
  const byKey = new Map(rollouts.map((rollout) => [rollout.key, rollout]));
  const readings = readingsOf(passes);
  const agreement = agreementOf(passes);
  const failed = rollouts.filter((rollout) => !isSuccess(rollout));

  const cite = ({ rollout: key, message, says }: Citation): Cited[] => {
    const rollout = byKey.get(key);
    if (!rollout) return [];
    const outcome = isSuccess(rollout) ? 'passed' : 'failed';
    return [{ conversation: nameOf(key), outcome, message, says, context: excerpt(rollout.messages, message) }];
  };

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
        return [{ capability, votes: lacking.length, passes: own.length, message, reasons }];
      })
      .sort((a, b) => b.votes - a.votes || (a.capability < b.capability ? -1 : 1));

  const beginningIn = ({ key, messages }: ScoredRollout): AnalysedFailure['begins'] => {
    const begins = beginningOf(passes.flatMap(({ failures }) => failures?.[key] ?? []));
    if (!begins) return undefined;
    const { of, message, votes, reason } = begins;
    return { of, message, votes, reason, context: excerpt(messages, message) };
  };

  return {
    name: o.name,
    madeAt: new Date().toISOString(),
    files: o.files,
    analyst: o.analyst,
    conversations: counts,
    notes,
    rule: o.rule,
    passes: passes.length,
    failedPasses,
    reason: selection.reason,
    capabilities: selection.capabilities.map(({ name, selected, votes, passes: looked, coverage, delta }) => {
      const candidate = discovery.candidates.find((one) => one.name === name);
      const all = readings.get(name);
      return {
        name,
        definition: candidate?.definition ?? '',
        selected,
        votes,
        passes: looked,
        coverage,
        delta,
        agreement: agreement[name]?.alpha,
        lacking: failed
          .filter(({ key }) => majorityOf(all?.get(key) ?? []) === 'LACKING')
          .map(({ key }) => nameOf(key)),
        citations: (candidate?.citations ?? []).flatMap(cite),
      };
    }),
    failures: failed.map((rollout) => ({
      conversation: nameOf(rollout.key),
      task: rollout.task,
      reward: rollout.reward,
      messages: rollout.messages.length,
      lacking: lackedBy(rollout.key),
      begins: beginningIn(rollout),
    })),
    faults: discovery.faults.map((fault) => ({ ...fault, citations: fault.citations.flatMap(cite) })),
    budget: o.budget,
    spent: o.spent,
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
