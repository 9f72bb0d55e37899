/** Judges from its first rollouts whether a base model can work on a target. */
import type { ArtifactRef } from './artifacts';
import { isSuccess, type ScoredRollout } from './rollout';

/** Tasks that are rolled out, once each, before all base rollouts are. */
export const CHECKED_TASKS = 16;
const FEWEST = 4;

export interface BaseCheck {
  /** The rollouts that were judged: they are among the base rollouts. */
  rollouts: ArtifactRef;
  problems: string[];
  warnings: string[];
}

/** Judges the first base rollouts: a problem if none calls an offered tool although not all succeed, a warning if no reward is above 0. Needs 4 rollouts. */
export function judgeBase(o: {
  rollouts: readonly ScoredRollout[];
  tools: readonly string[];
}): Pick<BaseCheck, 'problems' | 'warnings'> {
  const { rollouts, tools } = o;
  if (rollouts.length < FEWEST) return { problems: [], warnings: [] };
  const calls = rollouts.flatMap(({ messages }) =>
    messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : [])),
  );
  const callsTools = tools.length === 0 || calls.some(({ name }) => tools.includes(name));
  if (!callsTools && !rollouts.every(isSuccess)) return { problems: [noCall(rollouts.length, tools)], warnings: [] };
  const isRewarded = rollouts.some(({ reward }) => reward > 0);
  return { problems: [], warnings: isRewarded ? [] : [noReward(rollouts.length)] };
}

const noCall = (count: number, tools: readonly string[]): string =>
  `none of the first ${count} rollouts calls a tool that the target offers, such as ${tools.slice(0, 3).join(', ')}: take a base that calls tools, see that ` +
  'its chat template shows them, and that the policy server reads its calls (vLLM: --tool-call-parser)';

const noReward = (count: number): string =>
  `none of the first ${count} rollouts got any reward: without a success among the base rollouts no capability is selected`;

export const unsuitedText = ({ problems }: Pick<BaseCheck, 'problems'>): string =>
  `the base model can't work on this target: ${problems.join('; ')}. With --force the campaign continues anyway`;
