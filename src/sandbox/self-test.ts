/**
 * The self-test of a synthesized environment, before any model sees it. Invariants: it knows nothing but the module's own interface; a
 * module passes exactly if there is no finding; each finding says what is wrong, where, and how to mend it; it ends, whatever the module
 * does, and what the module does is never its own error.
 */
import type { SelfTest } from '../domain/results';
import { SUCCESS } from '../domain/rollout';
import { attackPolicies, attacksIn } from './attacks';
import type { AuditPolicy, Limits } from './audit-policy';
import { hintFindings } from './hint-checks';
import { withKnownValues } from './known-values';
import { OFFERED_TOOLS, SELF_TEST_CPU_MS } from './limits';
import { openModule, REQUIRED_EXPORTS, type EnvironmentModule } from './module';
import { SandboxError } from './sandbox';
import { told, type ScriptedEpisode } from './scripted-episode';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from './seeds';
import { diversityFindings, failed, observationFindings, solutionFindings } from './solution-checks';
import { branchPolicies, changedSolutions } from './solution-policies';
import { OutOfTime, openStage, type Stage, type Tested, type TestProgress } from './stage';
import { quoted } from './text';
import { schemaFindings } from './tool-schemas';
import { blindPolicies, copyingPolicies } from './trivial-policies';

/** Part of the key of a stored result: changes whenever a module could be judged otherwise. */
export const SELF_TEST_VERSION = '7';

/** Seeds from each of the three ranges; the first third of each policy's episodes decides whether the others are played. */
const FROM_EACH = 34;
const SCREENED = 12;
const SEEDS = Array.from({ length: FROM_EACH }, (_, n) =>
  [CALIBRATION_SEEDS, TRAINING_SEEDS, HELD_OUT_SEEDS].map((from) => from + n),
).flat();
/** Of the solutions, how many are played twice. */
const TWICE = 10;
/** Of policies that never read. */
const BLIND: Limits = { success: 0.25, reward: 0.3 };
/** Of shortcuts, of policies that copy what they read, and of a single branch of the solutions always: half the instances, and the slack of 102 seeds. */
const SHORTCUT: Limits = { success: 0.55, reward: 0.7 };
/** Of solutions with a wrong value, over the instances on which it is wrong. */
const CHANGED: Limits = { success: 0.5, reward: 0.7 };
/** Share of a limit that the first episodes have to reach. */
const NEAR = 0.5;
/** A policy that has something to do on fewer instances is not judged. */
const FEWEST_EPISODES = 10;
/** Findings go from hand to hand as messages of limited size; a module's texts, and what is wrong with it, have no limit. */
const MOST_FINDINGS = 20;
/** Of a conversation that a finding shows. */
const EVIDENCE_CHARS = 1_500;

/** Runs the self-test on a module's text. */
export async function selfTest({
  source,
  progress = () => {},
  cpuMs = SELF_TEST_CPU_MS,
}: {
  source: string;
  progress?: TestProgress;
  cpuMs?: number;
}): Promise<SelfTest> {
  const module = openModule({ source });
  const findings: string[] = [];
  let hints = false;
  try {
    hints = (await module.exports()).includes('hint');
    for await (const finding of examine({ source, module, progress, cpuMs }))
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

async function* examine({ source, module, ...limited }: Tested & { source: string }): AsyncGenerator<string> {
  const names = await module.exports();
  const missing = REQUIRED_EXPORTS.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    yield `the module does not export ${missing.join(', ')}: export a function under each name`;
    return;
  }
  const { tools, maxSteps } = await module.describe();
  if (tools.length < OFFERED_TOOLS.fewest || tools.length > OFFERED_TOOLS.most)
    yield `describe: ${tools.length} tools: offer ${OFFERED_TOOLS.fewest} to ${OFFERED_TOOLS.most} of the target's`;
  const malformed = [...schemaFindings(tools)];
  yield* malformed;
  if (malformed.length > 0) return;

  const stage = openStage({ module, ...limited, episodes: SEEDS.length + TWICE });
  const solved = await stage.each(SEEDS, async (seed) => stage.play(seed, await module.solve(seed)));
  yield* solutionFindings(solved, maxSteps);
  yield* determinismFindings(solved.slice(0, TWICE), async (seed) => stage.play(seed, await module.solve(seed)));
  yield* diversityFindings(solved);
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
    ...shortcuts,
    ...attackPolicies({ attacks, tools: knowing.tools }, SHORTCUT),
    ...blindPolicies(audited, BLIND),
    ...copyingPolicies(knowing, SHORTCUT),
    ...branchPolicies(knowing, SHORTCUT),
    ...changedSolutions(audited, { without: SHORTCUT, changed: CHANGED }),
  ];
  stage.plan(policies.length * SEEDS.length);
  for (const policy of policies) yield* policyFindings(policy, { solved, stage, maxSteps });
}

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
  const of = new Map(await stage.each(SEEDS, async (seed) => [seed, await module.shortcuts(seed)] as const));
  const names = new Set([...of.values()].flatMap((scripts) => Object.keys(scripts)));
  return [...names].map((name) => ({
    name: `shortcut "${name}"`,
    limits: SHORTCUT,
    on: ({ seed }) => new Map(Object.entries(of.get(seed) ?? {})).get(name),
  }));
}

/** All is played only if the first episodes come near a limit. */
async function* policyFindings(
  policy: AuditPolicy,
  { solved, stage, maxSteps }: { solved: readonly ScriptedEpisode[]; stage: Stage; maxSteps: number },
): AsyncGenerator<string> {
  let paid: ScriptedEpisode | undefined;
  const reward = async (reference: ScriptedEpisode): Promise<number[]> => {
    const script = policy.on(reference);
    if (script === undefined || script === 'solution') {
      stage.skip(1);
      return script ? [reference.reward] : [];
    }
    const played = await stage.play(reference.seed, script, maxSteps);
    if (played.reward >= SUCCESS) paid ??= played;
    return !policy.counts || policy.counts(played, reference) ? [played.reward] : [];
  };
  const firstOnes = solved.slice(0, 3 * SCREENED);
  const rewards = (await stage.each(firstOnes, reward)).flat();
  if (rewards.length > 0 && !reaches(rewards, policy.limits, NEAR)) return stage.skip(solved.length - firstOnes.length);
  rewards.push(...(await stage.each(solved.slice(firstOnes.length), reward)).flat());
  if (rewards.length < FEWEST_EPISODES || !reaches(rewards, policy.limits, 1)) return;
  yield (
    `reward: ${quoted(policy.name)} succeeds on ${(100 * successOf(rewards)).toFixed(0)}% (below ` +
    `${(100 * policy.limits.success).toFixed(0)}% allowed) with mean reward ${meanOf(rewards).toFixed(2)} (below ${policy.limits.reward} ` +
    `allowed): mix in instances on which it is wrong, or let the reward see what is` +
    (policy.isEvidence && paid ? `; seed ${paid.seed}: ${told(paid.messages, EVIDENCE_CHARS)}` : '')
  );
}

const successOf = (rewards: readonly number[]): number => rewards.filter((r) => r >= SUCCESS).length / rewards.length;
const meanOf = (rewards: readonly number[]): number => rewards.reduce((a, b) => a + b, 0) / rewards.length;
const reaches = (rewards: readonly number[], limits: Limits, share: number): boolean =>
  successOf(rewards) >= share * limits.success || meanOf(rewards) >= share * limits.reward;
