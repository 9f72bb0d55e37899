/** Step 2 of the method: writes or revises an environment or takes modules of a folder, tests them, and judges calibration rollouts. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCandidates } from '../analyst/steps';
import { digest, sha256 } from '../store/hash';
import type { ArtifactRef } from '../domain/artifacts';
import {
  calibrate as judgeCalibration,
  calibrationReportSchema,
  selfTestSchema,
  type RoundFeedback,
  type SelfTest,
  type CalibrationReport,
  type CalibrationBands,
} from '../domain/calibration';
import { kindOf, type EnvironmentSpec, type KindSpec } from '../domain/kinds';
import { labelPassSchema, type Candidate, type Lacking } from '../domain/capability';
import { groupByTask } from '../domain/outcomes';
import type { ChosenTasks } from '../domain/results';
import { tasksByLabel } from '../domain/selection';
import { type Plan, shuffle } from '../environments/split';
import { readOutcomes, readScored } from '../rollout/read';
import { LEAKING_SHARE, leaksOf } from '../sandbox/leakage';
import { withModule } from '../sandbox/module';
import { SELF_TEST_VERSION, selfTest as runSelfTest, TESTED_SEEDS } from '../sandbox/self-test';
import { moduleFiles } from '../sandbox/source';
import { cannotSynthesize, type ReviseInput } from '../synthesis/synthesizer';
import type { Dependencies } from './context';
import { working } from './heartbeat';
import { asking } from './ledger';
import { keptJson, readJson, type ArtifactStore } from '../store/store';
import { forbiddenOf, TEST_TEXTS } from './tasks';
import type { Payer } from './types';

/** The round before, which is revised; `attempts`: the rollouts that its last calibration judged. */
type Previous = RoundFeedback & { module: ArtifactRef; attempts?: ArtifactRef };

/** Line ends in JavaScript, which end a comment: text after one would become the module's code. */
const LINE_END = /[\n\r\u2028\u2029]/g;
/** Part of the key: increase it when the same rewards would be judged differently. */
const CALIBRATION_VERSION = '5';

export async function synthesize(
  { store, environments, kinds }: Dependencies,
  o: Payer & {
    target: EnvironmentSpec;
    synthesizer: KindSpec;
    rollouts: ArtifactRef;
    candidates: ArtifactRef;
    candidate: Candidate;
    /** The other selected capabilities: no instance should need one of them. */
    others: Lacking[];
    round: number;
    previous?: Previous;
    seed: number;
  },
): Promise<ArtifactRef> {
  const { target, synthesizer: spec, rollouts: ref, others, round, previous, seed, campaign, budget } = o;
  const payer = { campaign, budget };
  const candidate = await withCitations(store, o.candidates, o.candidate);
  const synthesizer = await kindOf(kinds.synthesizers, spec).open(spec, undefined);
  const read = environments.paidBy({ ...payer, step: TEST_TEXTS });
  const environment = await read.get(target);
  const description = await environment.describe();
  const { version } = description;
  const { identity: maker, ignoresSeed } = synthesizer;
  const asked = { maker, ref, version, candidate, others, previous };
  const key = `environment/${digest({ ...asked, ...(!ignoresSeed && { seed }) })}`;
  const known = await store.find(key);
  if (known) return known;
  const input = {
    candidate,
    others,
    description,
    rollouts: await readScored({ store, ref }),
    // A module that would show a test task's first message draws again.
    forbidden: await forbiddenOf(
      { store, environments: read, progress: working('read the test tasks').progress },
      target,
    ),
    seed,
    ...asking({ ...payer, store, role: 'synthesizer', title: `synthesize ${candidate.name}, round ${round}` }),
  };
  const { source, rationale } = previous
    ? await synthesizer.revise({ ...input, round, previous: await readBack(store, previous) })
    : await synthesizer.write(input);
  return store.put({
    key,
    producer: 'synthesize',
    inputs: [ref, ...(previous ? [previous.module] : []), ...(previous?.attempts ? [previous.attempts] : [])],
    mediaType: 'text/javascript',
    body: `${source}\n// Rationale: ${rationale.replace(LINE_END, ' ')}\n`,
  });
}

async function withCitations(store: ArtifactStore, candidates: ArtifactRef, candidate: Candidate): Promise<Candidate> {
  const found = (await readCandidates(store, candidates)).find(({ name }) => name === candidate.name);
  return found?.citations ? { ...candidate, citations: found.citations } : candidate;
}

/** `unlike`: the target; instances must not contain texts of its test tasks. */
export async function selfTest(
  { store, environments }: Dependencies,
  { module, unlike, ...payer }: Payer & { module: ArtifactRef; unlike: EnvironmentSpec },
): Promise<SelfTest> {
  const { progress } = working('self-test');
  const read = environments.paidBy({ ...payer, step: TEST_TEXTS });
  const forbidden = await forbiddenOf({ store, environments: read, progress }, unlike);
  const key = `self-test/${digest({ version: SELF_TEST_VERSION, module: module.sha256, forbidden })}`;
  const ref = await keptJson(store, { key, producer: 'selfTest', inputs: [module] }, async () => {
    const source = await readText(store, module);
    const tested = await runSelfTest({ source, progress });
    const found = tested.passed ? await leakFindings(source, forbidden) : [];
    return { ...tested, passed: tested.passed && found.length === 0, findings: [...tested.findings, ...found] };
  });
  return readJson(store, ref, selfTestSchema);
}

export async function calibrate(
  { store }: Pick<Dependencies, 'store'>,
  { bands, rollouts, confidence }: { bands: CalibrationBands; rollouts: ArtifactRef; confidence: number },
): Promise<CalibrationReport> {
  const key = `calibration/${digest({ version: CALIBRATION_VERSION, bands, rollouts, confidence })}`;
  const ref = await keptJson(store, { key, producer: 'calibrate', inputs: [rollouts] }, async () => {
    const { progress } = working('check calibration thresholds');
    progress(0, 1);
    const groups = [...groupByTask(await readOutcomes({ store, ref: rollouts })).values()];
    progress(1, 1);
    return judgeCalibration({ groups, bands, confidence });
  });
  return readJson(store, ref, calibrationReportSchema);
}

const readText = async (store: ArtifactStore, ref: ArtifactRef): Promise<string> =>
  (await store.read(ref)).toString('utf8');

async function readBack(
  store: ArtifactStore,
  { module, attempts, ...feedback }: Previous,
): Promise<ReviseInput['previous']> {
  return {
    ...feedback,
    source: await readText(store, module),
    ...(attempts && { attempts: await readScored({ store, ref: attempts }) }),
  };
}

/** Some instances may say a test task's text by coincidence: their seeds are left out when the environment is used. */
async function leakFindings(source: string, forbidden: readonly string[]): Promise<string[]> {
  const leaks = await withModule(source, (module) => leaksOf(module, { seeds: TESTED_SEEDS, forbidden }));
  const [first] = leaks;
  if (!first || leaks.length <= LEAKING_SHARE * TESTED_SEEDS.length) return [];
  return [
    `start: on ${leaks.length} of ${TESTED_SEEDS.length} seeds the text of a task is said that must not be known, e.g. by ` +
      `${first.who} on seed ${first.seed}: word these texts otherwise`,
  ];
}

/** Share of the chosen tasks of each label that is held out. */
const HELD_OUT_SHARE = 0.25;

/**
 * Chooses the target's train tasks for a capability (synthesizer `target_tasks`): those labelled LACKING in most passes, and at most as many labelled
 * PRESENT. Throws CannotSynthesize if they are fewer than a training step takes.
 */
export async function chooseTasks(
  { store }: Pick<Dependencies, 'store'>,
  o: {
    rollouts: ArtifactRef;
    labels: ArtifactRef[];
    capability: string;
    perStep: number;
    mostHeldOut: number;
    seed: number;
  },
): Promise<ChosenTasks> {
  const { rollouts: ref, labels, capability, perStep, mostHeldOut, seed } = o;
  const passes = await Promise.all(labels.map((pass) => readJson(store, pass, labelPassSchema)));
  const taskOf = new Map((await readScored({ store, ref })).map(({ key, task }) => [key, task]));
  const { lacking, present, mixed } = tasksByLabel({ passes, capability, taskOf });
  const chosen = [shuffle(lacking, `${seed}/lacking`), shuffle(present, `${seed}/present`).slice(0, lacking.length)];
  const held = chosen.map((tasks) => Math.min(Math.floor(tasks.length * HELD_OUT_SHARE), Math.ceil(mostHeldOut / 2)));
  const validation = chosen.flatMap((tasks, n) => tasks.slice(0, held[n]));
  const train = shuffle(
    chosen.flatMap((tasks, n) => tasks.slice(held[n])),
    `${seed}/train`,
  );
  if (train.length < perStep || validation.length === 0)
    throw cannotSynthesize(
      `most passes label ${lacking.length} train tasks LACKING and ${present.length} PRESENT, and a training step takes ${perStep} tasks ` +
        '(training.groupsPerStep) beside held-out ones; raise rollouts.tasks',
    );
  const plan: Plan = { train, validation, router: [], test: [] };
  const key = `target-tasks/${digest({ version: '1', plan })}`;
  const made = { key, producer: 'chooseTasks', inputs: [ref, ...labels] };
  const counts = {
    lacking: chosen[0]!.length,
    present: chosen[1]!.length,
    mixed: mixed.length,
    heldOut: validation.length,
  };
  return { plan: await keptJson(store, made, async () => plan), counts };
}

export async function takeModules(
  { store }: Pick<Dependencies, 'store'>,
  { folder }: { folder: string },
): Promise<{ file: string; module: ArtifactRef }[]> {
  const taken = [];
  for (const file of await moduleFiles(folder)) {
    const body = await readFile(join(folder, file));
    const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
    taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
  }
  return taken;
}
