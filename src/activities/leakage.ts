/**
 * Leakage check: no capability text, no evidence, no code of a module that was played and no synthesized task that was used may
 * contain a test task's text. Texts are compared as words, without case and punctuation.
 */
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Candidate } from '../domain/capability';
import { sandboxSpec } from '../domain/kinds';
import type { Environment, ResetResult } from '../domain/environment';
import { isFailure } from '../domain/failures';
import { openingOf } from '../domain/messages';
import type { Work } from '../domain/work';
import type { CampaignRecord, SelectionResult } from '../domain/results';
import type { ScoredRollout } from '../domain/rollout';
import { isDistinctive, messageHash, normalised, spelledOut } from '../sandbox/leakage';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, seedTasks, TRAINING_SEEDS } from '../domain/seeds';
import { readRollouts } from '../rollout/read';
import type { Environments } from './environments';
import { leftOut, startOf, taskText, testTexts } from './tasks';

/** Returns the test task whose whole text is in `text`, if there is one. */
export function leaked(tests: Map<string, string>, text: string): string | undefined {
  for (const [test, task] of tests) if (` ${text} `.includes(` ${test} `)) return task;
  return undefined;
}

/** Returns undefined where the module fails on the seed, which was then never played. */
async function seedStart(environment: Environment, task: string): Promise<ResetResult | undefined> {
  try {
    return await startOf(environment, task);
  } catch (error) {
    if (isFailure(error, 'BadEnvironment')) return undefined;
    throw error;
  }
}

/** As the report holds it. */
interface LeakageCheck {
  passed: boolean;
  textsChecked: number;
  testTasks: number;
  /** Seeds of synthesized environments that were not used. */
  seedsLeftOut: number;
  hits: { where: string; task: string }[];
  from: ArtifactRef[];
}

export async function checkLeakage(o: {
  store: ArtifactStore;
  environments: Environments;
  record: CampaignRecord;
  progress?: Work['progress'];
}): Promise<LeakageCheck | undefined> {
  const { environments, record, progress = () => undefined } = o;
  const { campaign, selection } = record;
  if (!selection) return undefined;
  const target = await environments.get(campaign.target);
  const tests = await testTexts({ store: o.store, environment: target, progress });
  const distinctive = new Map([...tests].filter(([text]) => isDistinctive(messageHash(text))));
  const texts: { where: string; text: string; among?: Map<string, string> }[] = [];
  for (const candidate of candidatesIn(selection)) {
    texts.push({
      where: `capability ${candidate.name}`,
      text: normalised(`${candidate.name} ${candidate.definition}`),
    });
  }
  const from: ArtifactRef[] = [selection.candidates];
  const read = new Set<string>();
  const out = new Set<string>();
  for (const { name, module, ranges } of played(record)) {
    const tasks: string[] = [];
    for (const range of ranges) {
      const { seeds, ref } = await leftOut({ ...o, progress }, { module, unlike: campaign.target, range });
      for (const seed of seeds) out.add(`${module.sha256}/${seed}`);
      if (ref && seeds.length > 0) from.push(ref);
      tasks.push(...seedTasks({ ...range, without: seeds }));
    }
    const unread = tasks.filter((task) => !read.has(`${module.sha256}/${task}`));
    if (unread.length === 0) continue;
    if (!from.some(({ sha256 }) => sha256 === module.sha256)) {
      from.push(module);
      const source = spelledOut((await o.store.read(module)).toString('utf8'));
      texts.push({ where: `${name}, its code`, text: normalised(source), among: distinctive });
    }
    const environment: Environment = await environments.get(sandboxSpec(module));
    for (const [n, task] of unread.entries()) {
      read.add(`${module.sha256}/${task}`);
      const start = await seedStart(environment, task);
      progress(n + 1, unread.length);
      if (!start) continue;
      texts.push({ where: `${name}, ${task}`, text: taskText(start.messages) });
    }
  }
  for (const { task, messages } of await exemplars(o.store, record))
    texts.push({ where: `exemplar ${task}`, text: taskText(openingOf(messages)) });
  const hits = texts.flatMap(({ where, text, among = tests }) => {
    const task = leaked(among, text);
    return task === undefined ? [] : [{ where, task }];
  });
  return {
    passed: hits.length === 0,
    textsChecked: texts.length,
    testTasks: tests.size,
    seedsLeftOut: out.size,
    hits,
    from,
  };
}

/** Returns the candidates that environments were written for. */
const candidatesIn = ({ selected }: SelectionResult): Candidate[] => selected.map(({ candidate }) => candidate);

interface Played {
  /** Name of the capability or the arm. */
  name: string;
  module: ArtifactRef;
  ranges: { from: number; count: number }[];
}

/** Returns the modules that were played, each with its tasks: those of capabilities, as far as each got, then those that arms trained on. */
function played({ campaign, capabilities = [], arms = [] }: CampaignRecord): Played[] {
  const { calibration, training, validation } = campaign;
  const own = capabilities.flatMap(({ name, rounds, work }): Played[] => {
    // A module that failed its self-test was never played, and may not even load.
    const round = rounds.findLast(({ selfTest }) => selfTest.passed);
    if (!round) return [];
    const ranges = [
      ...(round.calibrationRollouts ? [{ from: CALIBRATION_SEEDS, count: calibration.seeds }] : []),
      ...(work ? [{ from: TRAINING_SEEDS, count: work.training.steps * training.groupsPerStep }] : []),
      ...(work ? [{ from: HELD_OUT_SEEDS, count: validation.seeds }] : []),
    ];
    return [{ name, module: round.module, ranges }];
  });
  const ofArms = arms.flatMap(({ name, trainedOn = [] }) =>
    trainedOn.map(({ module, seeds }): Played => ({ name, module, ranges: [{ from: TRAINING_SEEDS, count: seeds }] })),
  );
  return [...own, ...ofArms];
}

/** Returns the rollouts that the candidates use as examples. Their stored text is checked, since a simulated user may word it differently after a reset. */
async function exemplars(store: ArtifactStore, { selection, baseRollouts }: CampaignRecord): Promise<ScoredRollout[]> {
  const keys = new Set(selection && candidatesIn(selection).flatMap(({ examples }) => examples));
  const found: ScoredRollout[] = [];
  for await (const rollout of readRollouts({ store, ref: baseRollouts.ref }))
    if (keys.has(rollout.key) && rollout.status === 'scored') found.push(rollout);
  return found;
}
