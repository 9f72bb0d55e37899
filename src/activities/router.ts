/**
 * Step 4 of the method: which adapters gain anything and so may be added up, a gate over all of them as one more option, and the router, which is
 * fitted on the outcome matrix of the train split.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { OutsideFailure } from '../domain/failures';
import { kindOf, type KindSpec } from '../domain/kinds';
import { openingOf } from '../domain/messages';
import { isSuccess, SUCCESS, type FixedPolicy, type TrainingRow } from '../domain/rollout';
import { contentOf, partsOf, plainAdapter } from '../policy/merge';
import { runPython } from '../policy/python';
import { readOutcomes, readScored, readTaskMeans } from '../rollout/read';
import { type FitInput, fitSchema, type FittedRouter } from '../routing/router';
import { type GpuDependencies, modelFolder, type PolicyDependencies, working, type Dependencies } from './context';
import { keptJson, type ArtifactStore } from '../artifacts/store';
import type { Training } from '../domain/campaign';
import { gainsAnything, successDifference, together } from '../domain/statistics';

/** On this queue because a router may ask the policy. */
export async function fitRouter(
  { store, kinds, python, client }: PolicyDependencies,
  {
    router: spec,
    definitions,
    outcomes,
    seed,
  }: {
    router: KindSpec;
    /** By capability: what a router may tell apart. */
    definitions?: Record<string, string>;
    seed: number;
    /** `base` first. */
    outcomes: { option: string; policy: FixedPolicy; rollouts: ArtifactRef }[];
  },
): Promise<{ router: ArtifactRef }> {
  const router = kindOf(kinds.routers, spec).open(spec, { python, client });
  const maker = router.identity;
  const options = outcomes.map(({ option, policy }) => ({ name: option, policy }));
  const batches = outcomes.map(({ rollouts }) => rollouts);
  const key = `router/${digest({ maker, options, batches, definitions, seed })}`;
  const inputs = [...batches, ...options.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref))];
  const ref = await keptJson(store, { key, producer: 'fitRouter', inputs }, async (): Promise<FittedRouter> => {
    const tasks = await outcomeMatrix(store, outcomes);
    const fit = fitSchema.parse(
      await router.fit({ options, tasks, ...(definitions && { definitions }), seed, ...working('fit the router') }),
    );
    return { maker, options, ...fit };
  });
  return { router: ref };
}

/** Tasks that every option has scored rollouts of, with their successes. */
async function outcomeMatrix(
  store: ArtifactStore,
  outcomes: { option: string; rollouts: ArtifactRef }[],
): Promise<FitInput['tasks']> {
  const tasks = new Map<string, FitInput['tasks'][number]>();
  for (const { option, rollouts: ref } of outcomes) {
    const scored = (await readOutcomes({ store, ref })).filter((outcome) => outcome.status === 'scored');
    // Of the options together each task's opening is read once, with the first batch that has it.
    if (scored.some(({ task }) => !tasks.has(task)))
      for (const { task: id, messages } of await readScored({ store, ref }))
        if (!tasks.has(id)) tasks.set(id, { id, messages: openingOf(messages), outcomes: {} });
    for (const { task, reward } of scored) (tasks.get(task)!.outcomes[option] ??= []).push(reward >= SUCCESS ? 1 : 0);
  }
  return [...tasks.values()].filter((task) => outcomes.every(({ option }) => task.outcomes[option]));
}

/** Changes whenever the same job would come to another policy. */
const GATE_VERSION = '3';

/** As trainer/moe_gate reads them. */
interface Row {
  prompt_ids: number[];
  completion_ids: number[];
  mask: number[];
}

/** All adapters as one, behind a gate that is trained on the successes of `outcomes`, the options' rollouts on the router's tasks. */
export async function trainGate(
  deps: GpuDependencies,
  {
    base,
    policies,
    outcomes,
    training,
    seed,
  }: {
    base: string;
    policies: FixedPolicy[];
    outcomes: ArtifactRef[];
    training: Pick<Training, 'threads' | 'dtype' | 'tokensPerForward'>;
    seed: number;
  },
): Promise<FixedPolicy> {
  const { store, python, gpus, merge } = deps;
  const parts = policies.map(({ adapters }) => partsOf(adapters));
  const { threads, dtype, tokensPerForward } = training;
  const decisive = { base, parts: parts.map(contentOf), outcomes, seed, dtype };
  const key = `gated/${digest({ version: GATE_VERSION, ...decisive })}`;
  const known = await store.find(key);
  if (known) return { base, adapters: [{ ref: known, weight: 1 }] };

  const { signal, progress } = working('train the gate');
  progress(0, 1);
  const refs = await Promise.all(parts.map(async (of) => plainAdapter(of) ?? (await merge(of))));
  const work = await mkdtemp(join(tmpdir(), 'gate-'));
  try {
    signal.throwIfAborted();
    const [file, folder] = [join(work, 'gate.json'), join(work, 'policy')];
    const job = {
      base_model: await modelFolder(deps, base),
      adapters: await Promise.all(refs.map((ref) => store.folder(ref))),
      tasks: await solvedTasks(store, outcomes),
      output_dir: folder,
      seed,
      threads,
      dtype,
      tokens_per_forward: tokensPerForward,
    };
    await writeFile(file, JSON.stringify(job));
    await gpus.use((env) =>
      runPython({ python, args: ['train-gate', '--job', file], env, signal, onProgress: progress }),
    );
    const ref = await store.putFolder({ key, producer: 'trainGate', folder, inputs: [...outcomes, ...refs] });
    return { base, adapters: [{ ref, weight: 1 }] };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Of each task that any option solved, the different ways in which it was solved. */
async function solvedTasks(
  store: ArtifactStore,
  batches: readonly ArtifactRef[],
): Promise<{ rows: Row[]; rollouts: number }[]> {
  const tasks = new Map<string, Map<string, Row[]>>();
  for (const ref of batches)
    for (const rollout of await readScored({ store, ref })) {
      if (!isSuccess(rollout) || rollout.rows.length === 0) continue;
      const rows = rollout.rows.map(rowOf);
      const ways = tasks.get(rollout.task) ?? new Map<string, Row[]>();
      tasks.set(rollout.task, ways.set(digest(rows), rows));
    }
  if (tasks.size < 2) {
    const problem = `${tasks.size} tasks of the outcome matrix were solved`;
    throw new OutsideFailure('BadInput', `${problem}; a gate is trained on at least 2: raise router.tasks`);
  }
  const byTask = [...tasks].sort(([a], [b]) => (a < b ? -1 : 1));
  return byTask.map(([, ways]) => ({ rows: [...ways.values()].flat(), rollouts: ways.size }));
}

function rowOf({ promptIds, completionIds, turns }: TrainingRow): Row {
  const mask = completionIds.map(() => 0);
  for (const { start, end } of turns) mask.fill(1, start, end);
  return { prompt_ids: promptIds, completion_ids: completionIds, mask };
}

/** Rollouts before a training and after it, on the same tasks. */
interface Batches {
  before: ArtifactRef;
  after: ArtifactRef;
}

/**
 * Which adapters gain anything (`gainsAnything`): on held-out seeds of their own environments, or on the target's tasks, batch by batch, each
 * against what it started from.
 */
export async function findGains(
  { store }: Pick<Dependencies, 'store'>,
  {
    adapters,
    ...level
  }: {
    adapters: { name: string; own: Batches; target: Batches[] }[];
    confidence: number;
    /** Of the draws. */
    seed: number;
  },
): Promise<{ gaining: string[] }> {
  const { progress } = working('compare the adapters');
  const read = async ({ before, after }: { before: ArtifactRef; after: ArtifactRef }) => ({
    treatment: await readTaskMeans(store, after),
    control: await readTaskMeans(store, before),
  });
  const gaining: string[] = [];
  for (const [n, { name, own, target }] of adapters.entries()) {
    progress(n, adapters.length);
    const batches = [];
    for (const each of target) batches.push(await read(each));
    const known = {
      own: successDifference({ ...(await read(own)), level }),
      target: successDifference({ ...together(batches), level }),
    };
    if (gainsAnything(known)) gaining.push(name);
  }
  return { gaining };
}
