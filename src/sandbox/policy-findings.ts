/**
 * What is wrong where a policy that must not pay does, or where an instance is of another branch for it than for its solution. Invariant: what
 * is played is a function of the rewards before.
 */
import { SUCCESS } from '../domain/rollout';
import { comparable, mean } from '../domain/statistics';
import type { AuditPolicy, Limits } from './audit-policy';
import { told, type ScriptedEpisode } from './scripted-episode';
import type { Stage } from './stage';
import { quoted } from './text';

/** Seeds from each range that decide whether the others are played. */
const SCREENED = 12;
/** Share of a limit that the first episodes have to reach. */
const NEAR = 0.5;
/** A policy that has something to do on fewer instances is not judged. */
const FEWEST_EPISODES = 10;
/** Of a conversation that a finding shows. */
const EVIDENCE_CHARS = 1_500;

interface Audit {
  solved: readonly ScriptedEpisode[];
  stage: Stage;
  maxSteps: number;
}

/** At most one for each policy, and one of branches: what moves one of them moves it for most policies. */
export async function* policyFindings(policies: readonly AuditPolicy[], audit: Audit): AsyncGenerator<string> {
  let moved = false;
  for (const policy of policies) {
    const { pays, moves } = await judged(policy, audit);
    if (moves !== undefined && !moved) yield moves;
    moved ||= moves !== undefined;
    if (pays !== undefined) yield pays;
  }
}

/** All is played only if the first episodes come near a limit. */
async function judged(
  policy: AuditPolicy,
  { solved, stage, maxSteps }: Audit,
): Promise<{ pays?: string; moves?: string | undefined }> {
  let paid: ScriptedEpisode | undefined;
  let moves: string | undefined;
  const reward = async (reference: ScriptedEpisode): Promise<number[]> => {
    const script = policy.on(reference);
    if (script === undefined || script === 'solution') {
      stage.skip(1);
      return script ? [reference.reward] : [];
    }
    const played = await stage.play(reference.seed, script, maxSteps);
    if (played.branch !== reference.branch)
      moves ??=
        `reward: seed ${played.seed} is of branch ${branchOf(played)} after ${quoted(policy.name)}, and of branch ` +
        `${branchOf(reference)} after its solution: take the branch from the seed alone, whatever the agent does`;
    if (played.reward >= SUCCESS) paid ??= played;
    return !policy.counts || policy.counts(played, reference) ? [played.reward] : [];
  };
  const firstOnes = solved.slice(0, 3 * SCREENED);
  const rewards = (await stage.each(firstOnes, reward)).flat();
  if (rewards.length > 0 && !reaches(rewards, policy.limits, NEAR)) stage.skip(solved.length - firstOnes.length);
  else rewards.push(...(await stage.each(solved.slice(firstOnes.length), reward)).flat());
  if (rewards.length < FEWEST_EPISODES || !reaches(rewards, policy.limits, 1)) return { moves };
  const pays =
    `reward: ${quoted(policy.name)} succeeds on ${(100 * successOf(rewards)).toFixed(0)}% (below ` +
    `${(100 * policy.limits.success).toFixed(0)}% allowed) with mean reward ${mean(rewards).toFixed(2)} (below ${policy.limits.reward} ` +
    `allowed): mix in instances on which it is wrong, or let the reward see what is` +
    (policy.isEvidence && paid ? `; seed ${paid.seed}: ${told(paid.messages, EVIDENCE_CHARS)}` : '');
  return { moves, pays };
}

const branchOf = ({ branch }: ScriptedEpisode): string => (branch === undefined ? 'none' : `"${branch}"`);

const successOf = (rewards: readonly number[]): number => rewards.filter((r) => r >= SUCCESS).length / rewards.length;
const reaches = (rewards: readonly number[], limits: Limits, share: number): boolean =>
  successOf(rewards) >= share * limits.success || comparable(mean(rewards)) >= share * limits.reward;
