/**
 * The self-test of a synthesized environment, before any model sees it. It knows the module's interface alone, and it
 * ends, whatever the module does; each finding says what is wrong, where, and how to mend it.
 */
import type { SelfTest } from '../domain/calibration';
import { SUCCESS } from '../domain/rollout';
import { comparable, mean } from '../domain/statistics';
import { attackPolicies, attacksIn } from './attacks';
import { type AuditPolicy, blindPolicies, copyingPolicies, withKnownValues } from './audit-policies';
import { mayOffer, OFFERED_TOOLS, quoted, SELF_TEST_CPU_MS } from './limits';
import { type EnvironmentModule, missingExports, openModule } from './module';
import {
  openStage,
  OutOfTime,
  type ScriptedEpisode,
  type Stage,
  type Tested,
  type TestProgress,
  conversationLine,
} from './play';
import { SandboxError } from './sandbox';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from './seeds';
import {
  diversityFindings,
  failed,
  hintFindings,
  observationFindings,
  repeatFindings,
  solutionFindings,
} from './solution-checks';
import { branchPolicies, changedSolutions, solutionsWithoutWrites } from './solution-policies';
import { schemaFindings } from './vocabulary';

/** Part of the key of a stored result: changes whenever a module could be judged otherwise. */
export const SELF_TEST_VERSION = '12';

const FROM_EACH = 34;
export const TESTED_SEEDS = Array.from({ length: FROM_EACH }, (_, n) =>
  [CALIBRATION_SEEDS, TRAINING_SEEDS, HELD_OUT_SEEDS].map((from) => from + n),
).flat();
/** Training seeds after those, which are solved only: a small table of instances repeats there. */
const MORE_TRAINING = Array.from({ length: 66 }, (_, n) => TRAINING_SEEDS + FROM_EACH + n);
const TWICE = 10;
/** Share of successes and mean reward, each to stay below. */
interface Limits {
  success: number;
  reward: number;
}

/** Of policies that never read. */
const BLIND: Limits = { success: 0.25, reward: 0.3 };
/** Of shortcuts, of policies that copy what they read, and of a single branch of the solutions always: half the instances, and the slack of 102 seeds. */
const SHORTCUT: Limits = { success: 0.55, reward: 0.7 };
/** Of solutions with a wrong value, over the instances on which it is wrong. */
const CHANGED: Limits = { success: 0.5, reward: 0.7 };
/** Findings go from hand to hand as messages of limited size; a module's texts, and what is wrong with it, have no limit. */
const MOST_FINDINGS = 20;

interface Options {
  source: string;
  progress?: TestProgress;
  cpuMs?: number;
}

export async function selfTest({ source, progress = () => {}, cpuMs = SELF_TEST_CPU_MS }: Options): Promise<SelfTest> {
  const module = openModule({ source });
  const findings: string[] = [];
  let hints = false;
  try {
    const names = await module.exports();
    hints = names.includes('hint');
    for await (const finding of examine({ source, module, progress, cpuMs, names }))
      if (findings.push(finding) > 2 * MOST_FINDINGS) break;
  } catch (error) {
    if (error instanceof SandboxError) findings.push(`the module fails: ${quoted(error.message, 500)}`);
    else if (error instanceof OutOfTime) findings.push(error.message);
    else throw error;
  } finally {
    await module.close();
  }
  const more = findings.splice(MOST_FINDINGS).length;
  if (more > 0) findings.push(`${more} more findings are left out: mend these first`);
  return { passed: findings.length === 0, findings, ...(hints && { hints }) };
}

async function* examine(o: Tested & { source: string; names: readonly string[] }): AsyncGenerator<string> {
  const { source, module, names } = o;
  const missing = missingExports(names);
  if (missing !== undefined) return yield missing;
  const { tools, maxSteps } = await module.describe();
  if (!mayOffer(tools.length))
    yield `describe: ${tools.length} tools: offer ${OFFERED_TOOLS.fewest} to ${OFFERED_TOOLS.most} of the target's, or none where it has none`;
  const malformed = [...schemaFindings(tools)];
  yield* malformed;
  if (malformed.length > 0) return;

  const stage = openStage({ ...o, episodes: TESTED_SEEDS.length + TWICE + MORE_TRAINING.length });
  const solve = async (seed: number): Promise<ScriptedEpisode> => stage.play(seed, await module.solve(seed));
  const solved = await stage.each(TESTED_SEEDS, solve);
  yield* solutionFindings(solved, maxSteps);
  yield* determinismFindings(solved.slice(0, TWICE), solve);
  yield* diversityFindings(solved);
  const heldOut = solved.filter(({ seed }) => seed >= HELD_OUT_SEEDS);
  const trained = solved.filter(({ seed }) => seed >= TRAINING_SEEDS && seed < HELD_OUT_SEEDS);
  yield* repeatFindings(heldOut, [...trained, ...(await stage.each(MORE_TRAINING, solve))]);
  yield* observationFindings(solved, tools);
  if (names.includes('hint')) yield* hintFindings({ module, stage, solved, tools });
  // Policies are judged by a reward that is right on the solutions.
  if (failed(solved).length > 0) return;

  const { attacks, wrong } = attacksIn(source);
  yield* wrong;
  const shortcuts = names.includes('shortcuts') ? await shortcutPolicies(module, stage) : [];
  const audited = { tools, solved };
  const knowing = { tools: withKnownValues(tools, solved), solved };
  const policies = [
    ...limited(SHORTCUT, shortcuts),
    ...limited(SHORTCUT, attackPolicies(attacks, knowing.tools)),
    ...limited(BLIND, blindPolicies(audited)),
    ...limited(SHORTCUT, [...copyingPolicies(knowing), ...branchPolicies(knowing)]),
    ...limited(SHORTCUT, solutionsWithoutWrites(audited)),
    ...limited(CHANGED, changedSolutions(audited)),
  ];
  stage.plan(policies.length * TESTED_SEEDS.length);
  yield* policyFindings(policies, { solved, stage, maxSteps });
}

type LimitedPolicy = AuditPolicy & { limits: Limits };
const limited = (limits: Limits, policies: readonly AuditPolicy[]): LimitedPolicy[] =>
  policies.map((policy) => ({ ...policy, limits }));

async function* determinismFindings(
  solved: readonly ScriptedEpisode[],
  again: (seed: number) => Promise<ScriptedEpisode>,
): AsyncGenerator<string> {
  for (const before of solved) {
    if (JSON.stringify(await again(before.seed)) === JSON.stringify(before)) continue;
    yield `seed ${before.seed} does not give the same bytes twice: draw everything from the seed`;
    return;
  }
}

/** Names are those of any seed: a shortcut that is told of one instance only is one as well. */
async function shortcutPolicies(module: EnvironmentModule, stage: Stage): Promise<AuditPolicy[]> {
  const scripts = new Map(
    await stage.each(TESTED_SEEDS, async (seed) => [seed, await module.shortcuts(seed)] as const),
  );
  const names = new Set([...scripts.values()].flatMap((named) => Object.keys(named)));
  return [...names].map((name) => ({
    name: `shortcut "${name}"`,
    on: ({ seed }) => new Map(Object.entries(scripts.get(seed) ?? {})).get(name),
  }));
}

/** Seeds from each range that decide whether the others are played. */
const SCREENED = 12;
/** Share of a limit that the first episodes have to reach. */
const NEAR = 0.5;
/** A policy that has something to do on fewer instances is not judged. */
const FEWEST_EPISODES = 10;
const EVIDENCE_CHARS = 1_500;

interface Audit {
  solved: readonly ScriptedEpisode[];
  stage: Stage;
  maxSteps: number;
}

/** At most one for each policy, and one of branches: what moves one of them moves it for most policies. */
async function* policyFindings(policies: readonly LimitedPolicy[], audit: Audit): AsyncGenerator<string> {
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
  policy: LimitedPolicy,
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
    (policy.isEvidence && paid ? `; seed ${paid.seed}: ${conversationLine(paid.messages, EVIDENCE_CHARS)}` : '');
  return { moves, pays };
}

const branchOf = ({ branch }: ScriptedEpisode): string => (branch === undefined ? 'none' : `"${branch}"`);

const successOf = (rewards: readonly number[]): number => rewards.filter((r) => r >= SUCCESS).length / rewards.length;
const reaches = (rewards: readonly number[], limits: Limits, share: number): boolean =>
  successOf(rewards) >= share * limits.success || comparable(mean(rewards)) >= share * limits.reward;
