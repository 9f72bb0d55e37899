/**
 * Whether a base model can work on a target at all, from what its tokenizer does not know and from its first rollouts. Invariant: a pure
 * judgement; only what no training on the target mends is a problem, whatever else is noticed is a warning.
 */
import { z } from 'zod';
import type { ArtifactRef } from './artifacts';
import { onlyBehaviour, said } from './transcript';
import { isSuccess, type ScoredRollout } from './rollout';

/** Of the texts that the target shows a policy. English in a vocabulary that was made for it has next to none. */
const MAX_UNKNOWN = 0.1;
/** Tasks that are rolled out, once each, before all base rollouts are. */
export const CHECKED_TASKS = 16;
/** Fewer conversations say nothing of what a base does. */
const FEWEST = 4;

const count = z.number().int().nonnegative();
/** Of some texts, and the most frequent words among the unknown ones. No token at all: there is no tokenizer to ask. */
export const tokenCountsSchema = z.object({
  tokens: count,
  unknown: count,
  words: z.array(z.object({ word: z.string(), count })),
});
export type TokenCounts = z.infer<typeof tokenCountsSchema>;

export interface BaseCheck {
  /** The rollouts that were looked at: they are among the base rollouts. */
  rollouts: ArtifactRef;
  /** Why the base can't work on the target. */
  problems: string[];
  warnings: string[];
}

export function judgeBase(found: {
  tokens: TokenCounts;
  /** One of each task. */
  rollouts: readonly ScoredRollout[];
  /** Names of the tools that are offered. */
  tools: readonly string[];
}): Pick<BaseCheck, 'problems' | 'warnings'> {
  const { tokens, rollouts, tools } = found;
  const problems = [isUnknown(tokens) ? unknownProblem(tokens) : undefined, ...conduct(rollouts, tools)];
  const warnings = [
    rollouts.length > 0 && rollouts.every(({ reward }) => reward === 0) ? noReward(rollouts) : undefined,
  ];
  const told = (findings: (string | undefined)[]) => findings.filter((one) => one !== undefined);
  return { problems: told(problems), warnings: told(warnings) };
}

const share = ({ tokens, unknown }: TokenCounts): number => (tokens === 0 ? 0 : unknown / tokens);
export const isUnknown = (tokens: TokenCounts): boolean => share(tokens) > MAX_UNKNOWN;

const percent = (value: number): string => `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;

/** What a tokenizer makes of a target's texts, in words. */
export function tokensText(tokens: TokenCounts): string {
  if (tokens.tokens === 0) return 'the base has no tokenizer.json that could be asked for unknown tokens';
  const { unknown, words } = tokens;
  const frequent = words.map(({ word }) => JSON.stringify(word)).join(', ');
  return (
    `${percent(share(tokens))} of the target's text (${unknown} of ${tokens.tokens} tokens) is unknown to the base's tokenizer` +
    (unknown > 0 ? `, most often ${frequent}` : '')
  );
}

export const TOKENS_FIX = "take a base whose vocabulary has the target's words (baseModel.path)";

const unknownProblem = (tokens: TokenCounts): string =>
  `${tokensText(tokens)}; the limit is ${percent(MAX_UNKNOWN)}: ${TOKENS_FIX}`;

/** A base that solves every task may do so however it likes. */
function conduct(rollouts: readonly ScoredRollout[], tools: readonly string[]): (string | undefined)[] {
  if (rollouts.length < FEWEST || rollouts.every(isSuccess)) return [];
  return [sameProblem(rollouts), callProblem(rollouts, tools)];
}

function sameProblem(rollouts: readonly ScoredRollout[]): string | undefined {
  const behaviour = onlyBehaviour(rollouts);
  if (behaviour === undefined) return undefined;
  return (
    `${rollouts.length} rollouts of as many different tasks all ${said(behaviour)}: take a base that knows the target's words and format, or ` +
    'give its folder the chat template that it was trained with'
  );
}

function callProblem(rollouts: readonly ScoredRollout[], tools: readonly string[]): string | undefined {
  if (tools.length === 0) return undefined;
  const called = new Set(
    rollouts.flatMap(({ messages }) =>
      messages.flatMap((message) =>
        message.role === 'assistant' ? (message.toolCalls ?? []).map(({ name }) => name) : [],
      ),
    ),
  );
  if (tools.some((name) => called.has(name))) return undefined;
  const others = called.size > 0 ? ` (they call ${[...called].slice(0, 3).join(', ')})` : '';
  return (
    `none of ${rollouts.length} rollouts calls a tool that the target offers, such as ${tools.slice(0, 3).join(', ')}${others}: take a base that ` +
    'calls tools, see that its chat template shows them, and that the policy server reads its calls (vLLM: --tool-call-parser)'
  );
}

const noReward = (rollouts: readonly ScoredRollout[]): string =>
  `none of ${rollouts.length} rollouts got any reward: without a success among the base rollouts no capability is selected`;

/** What a campaign that is stopped says. */
export const unsuitedText = ({ problems }: Pick<BaseCheck, 'problems'>): string =>
  `the base model can't work on this target: ${problems.join('; ')}. With --force the campaign goes on anyhow`;
