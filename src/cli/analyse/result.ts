/**
 * analysis.json: what was found in conversations from elsewhere (docs/conversations.md). Invariants: it is complete, so that page and terminal are
 * made of it and of people's labels alone; conversations are called as in the user's files, and message numbers are indexes into their messages.
 */
import { z } from 'zod';
import { selectionRuleSchema } from '../../domain/campaign';
import {
  beginningOf,
  type Citation,
  commonest,
  failureOriginSchema,
  type Label,
  type LabelPass,
} from '../../domain/capability';
import { budgetSchema, spentSchema } from '../../domain/endpoints';
import type { Message } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { agreementOf, labelsOf } from '../../domain/selection';
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

export const labelNames = ['LACKING', 'PRESENT', 'NA'] as const satisfies readonly Label[];
type Votes = Record<Label, number>;

/** What the passes say of each trajectory, by capability; passes that did not look at it count neither way. */
export function votesOf(passes: readonly LabelPass[]): Map<string, Map<string, Votes>> {
  const all = new Map<string, Map<string, Votes>>();
  for (const pass of passes)
    for (const [capability, labels] of labelsOf(pass)) {
      const own = all.get(capability) ?? new Map<string, Votes>();
      all.set(capability, own);
      for (const [id, label] of labels) {
        const votes = own.get(id) ?? { LACKING: 0, PRESENT: 0, NA: 0 };
        own.set(id, { ...votes, [label]: votes[label] + 1 });
      }
    }
  return all;
}

/** The label with most votes; in a tie PRESENT comes first, as within a pass, and LACKING last. */
export const majority = (votes: Votes): Label =>
  (['PRESENT', 'NA', 'LACKING'] as const).reduce((most, label) => (votes[label] > votes[most] ? label : most));

export function buildAnalysis(
  o: Pick<Analysis, 'name' | 'files' | 'analyst' | 'rule' | 'budget' | 'spent'> & {
    conversations: Conversations;
    result: AnalysisResult;
  },
): Analysis {
  const { conversations, result } = o;
  const { rollouts, ids } = conversations;
  const { passes, failedPasses, selection, discovery } = result;
  const nameOf = (key: string) => ids.get(key) ?? key;
  const byKey = new Map(rollouts.map((rollout) => [rollout.key, rollout]));
  // A step that no conversation has is left out.
  const cite = ({ rollout: key, message, says }: Citation): Cited[] => {
    const rollout = byKey.get(key);
    if (!rollout || message >= rollout.messages.length) return [];
    const outcome = isSuccess(rollout) ? 'passed' : 'failed';
    return [{ conversation: nameOf(key), outcome, message, says, context: excerpt(rollout.messages, message) }];
  };
  const failed = rollouts.filter((rollout) => !isSuccess(rollout));
  const votes = votesOf(passes);
  const agreement = agreementOf(passes);
  return {
    name: o.name,
    madeAt: new Date().toISOString(),
    files: o.files,
    analyst: o.analyst,
    conversations: conversations.counts,
    notes: conversations.notes,
    rule: o.rule,
    passes: passes.length,
    failedPasses,
    ...(selection.reason !== undefined && { reason: selection.reason }),
    capabilities: selection.capabilities.map(({ name, selected, votes: count, passes: looked, coverage, delta }) => {
      const candidate = discovery.candidates.find((one) => one.name === name);
      const alpha = agreement[name]?.alpha;
      const lacks = ({ key }: ScoredRollout) => {
        const own = votes.get(name)?.get(key);
        return own !== undefined && majority(own) === 'LACKING';
      };
      return {
        name,
        definition: candidate?.definition ?? '',
        selected,
        votes: count,
        passes: looked,
        coverage,
        delta,
        ...(alpha !== undefined && { agreement: alpha }),
        lacking: failed.filter(lacks).map(({ key }) => nameOf(key)),
        citations: (candidate?.citations ?? []).flatMap(cite),
      };
    }),
    failures: failed.map((rollout) => failureOf({ rollout, conversation: nameOf(rollout.key), passes, votes })),
    faults: discovery.faults.map((fault) => ({ ...fault, citations: fault.citations.flatMap(cite) })),
    budget: o.budget,
    spent: o.spent,
  };
}

/** What a failed conversation lacks, and where its failure begins. */
function failureOf(o: {
  rollout: ScoredRollout;
  conversation: string;
  passes: readonly LabelPass[];
  votes: ReturnType<typeof votesOf>;
}): AnalysedFailure {
  const { rollout, conversation, passes } = o;
  const { key, task, reward, messages } = rollout;
  const has = (message: number | undefined) => message !== undefined && message < messages.length;
  const lacking = [...o.votes].flatMap(([capability, all]) => {
    const votes = all.get(key);
    if (!votes || votes.LACKING === 0) return [];
    const reasons = passes.flatMap((pass) => {
      const given = pass.reasons?.[capability]?.[key];
      if (!given || !pass.labels[capability]?.lacking_failed.includes(key)) return [];
      const { reason, message } = given;
      // Numbered as it was asked for: passes that failed leave gaps.
      return [{ pass: Number(pass.attempt), reason, ...(has(message) && { message }) }];
    });
    const step = commonest(reasons.flatMap(({ message }) => message ?? []));
    const looked = votes.LACKING + votes.PRESENT + votes.NA;
    return [{ capability, votes: votes.LACKING, passes: looked, ...(step && { message: step.message }), reasons }];
  });
  const origins = passes.flatMap(({ failures }) => failures?.[key] ?? []);
  const begins = beginningOf(origins.filter(({ message }) => has(message)));
  return {
    conversation,
    task,
    reward,
    messages: messages.length,
    lacking: lacking.sort((a, b) => b.votes - a.votes || (a.capability < b.capability ? -1 : 1)),
    ...(begins && {
      begins: {
        of: begins.of,
        message: begins.message,
        votes: begins.votes,
        reason: begins.reason,
        context: excerpt(messages, begins.message),
      },
    }),
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
