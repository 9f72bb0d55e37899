/**
 * The self-test of a synthesized environment, before any model sees it. It knows the module's interface alone, and it
 * ends, whatever the module does; each finding says what is wrong, where, and how to fix it.
 */
import type { SelfTest } from '../domain/calibration';
import { createLimit } from '../domain/concurrency';
import { isSuccess } from '../domain/rollout';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from '../domain/seeds';
import { comparable, mean } from '../domain/statistics';
import { attackPolicies, attacksIn } from './attacks';
import { conversationLine } from './conversation';
import { play, type Script, type ScriptedEpisode, type EnvironmentModule, missingExports, withModule } from './module';
import { mayOffer, OFFERED_TOOLS, quoted, SELF_TEST_CPU_MS, SELF_TEST_EPISODE_CPU_MS } from './limits';
import { type AuditPolicy, auditPolicies, type Limits, SHORTCUT, withKnownValues } from './policies';
import { SandboxError } from './sandbox';
import { failed, solutionChecks } from './solution-checks';
import { schemaFindings } from './vocabulary';

/** Part of the key of a stored result: changes whenever a module could be judged otherwise. */
export const SELF_TEST_VERSION = '15';

const FROM_EACH = 34;
export const TESTED_SEEDS = Array.from({ length: FROM_EACH }, (_, n) =>
  [CALIBRATION_SEEDS, TRAINING_SEEDS, HELD_OUT_SEEDS].map((from) => from + n),
).flat();
/** Training seeds after those, which are solved only: a small table of instances repeats there. */
const MORE_TRAINING = Array.from({ length: 66 }, (_, n) => TRAINING_SEEDS + FROM_EACH + n);
const TWICE = 10;
/** Maximum number of findings: they are sent in messages of limited size. */
const MOST_FINDINGS = 20;
const PARALLEL = 8;

/** Called with the numbers of episodes that are played and planned, as far as known. */
type Progress = (done: number, total: number) => void;

export async function selfTest({
  source,
  progress = () => {},
  cpuMs = SELF_TEST_CPU_MS,
}: {
  source: string;
  progress?: Progress;
  cpuMs?: number;
}): Promise<SelfTest> {
  const findings: string[] = [];
  await withModule(source, async (module) => {
    try {
      for await (const finding of examine({ source, stage: openStage({ module, progress, cpuMs }) }))
        if (findings.push(finding) > 2 * MOST_FINDINGS) break;
    } catch (error) {
      if (error instanceof SandboxError) findings.push(`the module fails: ${quoted(error.message, 500)}`);
      else if (error instanceof OutOfTime) findings.push(error.message);
      else throw error;
    }
  });
  const more = findings.splice(MOST_FINDINGS).length;
  if (more > 0) findings.push(`${more} more findings are left out: fix these first`);
  return { passed: findings.length === 0, findings };
}

async function* examine({ source, stage }: { source: string; stage: Stage }): AsyncGenerator<string> {
  const { module } = stage;
  const names = await module.exports();
  const missing = missingExports(names);
  if (missing !== undefined) return yield missing;
  const { tools, maxSteps } = await module.describe();
  if (!mayOffer(tools.length))
    yield `describe: ${tools.length} tools: offer ${OFFERED_TOOLS.fewest} to ${OFFERED_TOOLS.most} of the target's, or none where it has none`;
  const malformed = schemaFindings(tools);
  yield* malformed;
  if (malformed.length > 0) return;

  stage.plan(TESTED_SEEDS.length + TWICE + MORE_TRAINING.length);
  const solved = await stage.solve(TESTED_SEEDS);
  for (const check of solutionChecks)
    yield* await check({
      maxSteps,
      solved,
      again: () => stage.solve(TESTED_SEEDS.slice(0, TWICE)),
      moreTraining: () => stage.solve(MORE_TRAINING),
    });
  // Policies are judged by a reward that is right on the solutions.
  if (failed(solved).length > 0) return;

  const { attacks, wrong } = attacksIn(source);
  yield* wrong;
  const policies = [
    ...(names.includes('shortcuts') ? await shortcutPolicies(stage) : []),
    ...attackPolicies(attacks, withKnownValues(tools, solved)),
    ...auditPolicies({ tools, solved }),
  ];
  stage.plan(policies.length * TESTED_SEEDS.length);
  let moved = false;
  for (const policy of policies) {
    const { pays, moves } = await judged(policy, { solved, stage, maxSteps });
    // A branch that depends on the agent does so for most policies: one finding is enough.
    if (moves !== undefined && !moved) yield moves;
    moved ||= moves !== undefined;
    if (pays !== undefined) yield pays;
  }
}

class OutOfTime extends Error {}

type Stage = ReturnType<typeof openStage>;

/** Plays episodes as long as the module has time left, counted from here on. */
function openStage({ module, progress, cpuMs }: { module: EnvironmentModule; progress: Progress; cpuMs: number }) {
  let [done, total] = [0, 0];
  const before = module.cpuMs();
  const atOnce = createLimit(PARALLEL);
  const each = <Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> =>
    Promise.all(items.map((item) => atOnce(() => work(item))));

  async function playOne(seed: number, script: Script, maxSteps?: number): Promise<ScriptedEpisode> {
    const most = Math.max(cpuMs, SELF_TEST_EPISODE_CPU_MS * total);
    if (module.cpuMs() - before > most)
      throw new OutOfTime(
        `the self-test ends unfinished: ${most / 1000} s of computing went into ${done} episodes: make the functions faster`,
      );
    const episode = await play(module, { seed, script, maxSteps });
    skip(1);
    return episode;
  }

  /** Episodes that were planned and need not be played. */
  function skip(episodes: number): void {
    done += episodes;
    total = Math.max(total, done);
    progress(done, total);
  }

  return {
    module,
    each,
    play: playOne,
    solve: (seeds: readonly number[]) => each(seeds, async (seed) => playOne(seed, await module.solve(seed))),
    plan: (episodes: number) => void (total += episodes),
    skip,
  };
}

/** Collects the shortcuts of all seeds; a shortcut of a single instance counts too. */
async function shortcutPolicies({ module, each }: Stage): Promise<AuditPolicy[]> {
  const scripts = new Map(await each(TESTED_SEEDS, async (seed) => [seed, await module.shortcuts(seed)] as const));
  const names = new Set([...scripts.values()].flatMap((named) => Object.keys(named)));
  return [...names].map((name) => ({
    name: `shortcut "${name}"`,
    limits: SHORTCUT,
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

/** Returns findings if the policy reaches a limit or changes an instance's branch. Plays all episodes only if the first ones come near a limit. */
async function judged(
  policy: AuditPolicy,
  { solved, stage, maxSteps }: { solved: readonly ScriptedEpisode[]; stage: Stage; maxSteps: number },
): Promise<{ pays?: string | undefined; moves?: string | undefined }> {
  const { limits } = policy;
  let paid: ScriptedEpisode | undefined;
  let moves: string | undefined;
  const rewardsOn = async (references: readonly ScriptedEpisode[]): Promise<number[]> =>
    (await stage.each(references, rewardOn)).flat();
  async function rewardOn(reference: ScriptedEpisode): Promise<number[]> {
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
    if (isSuccess(played)) paid ??= played;
    return !policy.counts || policy.counts(played, reference) ? [played.reward] : [];
  }
  const others = solved.slice(3 * SCREENED);
  const rewards = await rewardsOn(solved.slice(0, 3 * SCREENED));
  if (rewards.length > 0 && !reaches(rewards, limits, NEAR)) stage.skip(others.length);
  else rewards.push(...(await rewardsOn(others)));
  if (rewards.length < FEWEST_EPISODES || !reaches(rewards, limits, 1)) return { moves };
  const pays =
    `reward: ${quoted(policy.name)} succeeds on ${(100 * successOf(rewards)).toFixed(0)}% (below ` +
    `${(100 * limits.success).toFixed(0)}% allowed) with mean reward ${mean(rewards).toFixed(2)} (below ${limits.reward} ` +
    `allowed): mix in instances on which it is wrong, or let the reward see what is` +
    (policy.isEvidence && paid ? `; seed ${paid.seed}: ${conversationLine(paid.messages, EVIDENCE_CHARS)}` : '');
  return { moves, pays };
}

const branchOf = ({ branch }: ScriptedEpisode): string => (branch === undefined ? 'none' : `"${branch}"`);

const successOf = (rewards: readonly number[]): number =>
  rewards.filter((reward) => isSuccess({ reward })).length / rewards.length;
const reaches = (rewards: readonly number[], limits: Limits, share: number): boolean =>
  successOf(rewards) >= share * limits.success || comparable(mean(rewards)) >= share * limits.reward;
