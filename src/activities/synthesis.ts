/** Step 2 of the method: writes or revises an environment, tests it, and judges its calibration rollouts. */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { calibrate, calibrationReportSchema } from '../domain/calibration';
import { kindOf } from '../domain/kinds';
import { groupByTask } from '../domain/outcomes';
import { selfTestSchema } from '../domain/calibration';
import { readOutcomes, readScored } from '../rollout/read';
import { LEAKING_SHARE, leaksOf } from '../sandbox/leakage';
import { openModule } from '../sandbox/module';
import { SELF_TEST_VERSION, selfTest, TESTED_SEEDS } from '../sandbox/self-test';
import type { ReviseInput } from '../synthesis/synthesizer';
import { asking, type Dependencies, working } from './context';
import { keptJson, readJson } from '../artifacts/json';
import { forbiddenOf, TEST_TEXTS } from './tasks';
import type { AnalysisActivities, ControlActivities } from './types';

type Previous = NonNullable<Parameters<AnalysisActivities['synthesize']>[0]['previous']>;

/** As JavaScript ends comments: what follows one would be the module's code. */
const LINE_END = /[\n\r\u2028\u2029]/g;
/** Changes whenever the same rewards would be judged otherwise. */
const CALIBRATION_VERSION = '4';

export function createSynthesis({
  store,
  environments,
  kinds,
}: Dependencies): Pick<AnalysisActivities, 'synthesize'> & Pick<ControlActivities, 'selfTest' | 'calibrate'> {
  const text = async (ref: ArtifactRef): Promise<string> => (await store.read(ref)).toString('utf8');

  async function readBack({ module, attempts, ...feedback }: Previous): Promise<ReviseInput['previous']> {
    return {
      ...feedback,
      source: await text(module),
      ...(attempts && { attempts: await readScored({ store, ref: attempts }) }),
    };
  }

  return {
    async synthesize({ target, synthesizer: spec, rollouts: ref, candidate, others, round, previous, seed, ...payer }) {
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
        // Modules draw again rather than come up with a test task's first message.
        forbidden: await forbiddenOf(
          { store, environments: read, progress: working('read the test tasks').progress },
          target,
        ),
        seed,
        ...asking({ ...payer, store, role: 'synthesizer', title: `synthesize ${candidate.name}, round ${round}` }),
      };
      const { source, rationale } = previous
        ? await synthesizer.revise({ ...input, round, previous: await readBack(previous) })
        : await synthesizer.write(input);
      return store.put({
        key,
        producer: 'synthesize',
        inputs: [ref, ...(previous ? [previous.module] : []), ...(previous?.attempts ? [previous.attempts] : [])],
        mediaType: 'text/javascript',
        body: `${source}\n// Rationale: ${rationale.replace(LINE_END, ' ')}\n`,
      });
    },

    async selfTest({ module, unlike, ...payer }) {
      const { progress } = working('self-test');
      const read = environments.paidBy({ ...payer, step: TEST_TEXTS });
      const forbidden = await forbiddenOf({ store, environments: read, progress }, unlike);
      const key = selfTestKey({ module: module.sha256, forbidden });
      const ref = await keptJson(store, { key, producer: 'selfTest', inputs: [module] }, async () => {
        const source = await text(module);
        const tested = await selfTest({ source, progress });
        const found = tested.passed ? await leakFindings(source, forbidden) : [];
        return { ...tested, passed: tested.passed && found.length === 0, findings: [...tested.findings, ...found] };
      });
      return readJson(store, ref, selfTestSchema);
    },

    async calibrate({ bands, rollouts, confidence }) {
      const key = `calibration/${digest({ version: CALIBRATION_VERSION, bands, rollouts, confidence })}`;
      const ref = await keptJson(store, { key, producer: 'calibrate', inputs: [rollouts] }, async () => {
        const { progress } = working('hold the rewards against the bands');
        progress(0, 1);
        const groups = [...groupByTask(await readOutcomes({ store, ref: rollouts })).values()];
        progress(1, 1);
        return calibrate({ groups, bands, confidence });
      });
      return readJson(store, ref, calibrationReportSchema);
    },
  };
}

/** Some instances may say a test task's text by coincidence: their seeds are left out when the environment is used. */
async function leakFindings(source: string, forbidden: readonly string[]): Promise<string[]> {
  const module = openModule({ source });
  try {
    const leaks = await leaksOf(module, { seeds: TESTED_SEEDS, forbidden });
    const [first] = leaks;
    if (!first || leaks.length <= LEAKING_SHARE * TESTED_SEEDS.length) return [];
    return [
      `start: on ${leaks.length} of ${TESTED_SEEDS.length} seeds the text of a task is said that must not be known, e.g. by ` +
        `${first.who} on seed ${first.seed}: word these texts otherwise`,
    ];
  } finally {
    await module.close();
  }
}

/** `module`: hash of its text as stored; `forbidden`: of the texts of the target's test tasks. */
export const selfTestKey = (of: { module: string; forbidden: readonly string[] }): string =>
  `self-test/${digest({ version: SELF_TEST_VERSION, ...of })}`;
