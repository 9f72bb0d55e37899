/** Activities of a campaign that runs in no time: what each returns can be replaced by a test. The real ones are tested end to end. */
import type { Activities } from '../../src/activities';
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { RollOutInput } from '../../src/activities/types';
import { campaignSchema, type Campaign } from '../../src/domain/campaign';
import type { CalibrationReport } from '../../src/domain/calibration';
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { FailureType } from '../../src/domain/failures';
import type { CampaignRecord } from '../../src/domain/results';
import type { FixedPolicy, RolloutSummary } from '../../src/domain/rollout';
import { shopCampaign } from '../support/kinds';

/** Whose workers the fake `prepare` names. */
export const POOL = 'pool';

export const artifact = (name: string): ArtifactRef => ({
  uri: `artifact:${name}`,
  sha256: name,
  bytes: 1,
  mediaType: 'text/plain',
});

export const config = (fields: object = {}): Campaign =>
  campaignSchema.parse({ ...shopCampaign, training: { steps: 4, checkpointEvery: 2 }, ...fields });

export const adapter = (name: string): FixedPolicy => ({
  base: 'base@1',
  adapters: [{ ref: artifact(name), weight: 1 }],
});

export const summary = (input: Pick<RollOutInput, 'purpose' | 'title'>, successRate = 0.3): RolloutSummary => ({
  ref: artifact(input.title),
  purpose: input.purpose,
  title: input.title,
  scored: 10,
  broken: 1,
  meanReward: successRate,
  successRate,
  promptTokens: 1,
  completionTokens: 1,
  seconds: 1,
  errors: {},
});

export const calibration = (accepted: boolean): CalibrationReport =>
  ({
    accepted,
    verdict: accepted ? 'accepted' : 'too_easy',
    reasons: accepted ? [] : ['success rate 0.9 is above 0.6'],
    successRate: accepted ? 0.4 : 0.9,
  }) as unknown as CalibrationReport;

export type { Activities };

/** That is not tried again. */
export const failure = (type: FailureType, message: string): ApplicationFailure =>
  ApplicationFailure.create({ type, message, nonRetryable: true });

/** Candidates of the fakes. */
export const [REFUSE, TELL] = ['refuse_what_is_forbidden', 'tell_what_is_asked'] as const;
/** Other ones are selected. */
export const selecting = (...names: string[]): Pick<Activities, 'select'> => ({
  select: async () => ({
    ref: artifact('selection'),
    selected: names.map((name) => ({ candidate: { name, definition: `${name}!`, examples: [] }, votes: 10 })),
  }),
});

/** The calls that were made, in order, and the record that the report was written from. */
export interface Seen {
  rollOuts: RollOutInput[];
  trainings: {
    name: string;
    steps: number;
    from?: FixedPolicy['adapters'] | undefined;
  }[];
  searches: { name: string; rollouts: number; seed: number; searchSeed: number }[];
  record?: CampaignRecord;
}

export type ActivityName = keyof Activities;

export function fakeActivities(replaced: Partial<Activities> = {}): {
  activities: Activities;
  seen: Seen;
} {
  const seen: Seen = { rollOuts: [], trainings: [], searches: [] };
  const activities: Activities = {
    prepare: async () => ({
      base: 'base@1',
      pool: POOL,
      target: { name: 'shop', version: '1' },
      plan: artifact('plan'),
      tasks: { train: 4, validation: 2, router: 4, test: 4 },
    }),
    discover: async () => ({ ref: artifact('candidates'), selects: 'by labels' }),
    label: async ({ pass }) => artifact(`labels-${pass}`),
    ...selecting(REFUSE, TELL),
    synthesize: async ({ candidate, round }) => artifact(`${candidate.name}-${round}`),
    chooseTasks: async () => ({ plan: artifact('chosen'), counts: { lacking: 9, present: 9, mixed: 2, heldOut: 4 } }),
    selfTest: async () => ({ passed: true, findings: [] }),
    takeModules: async () => ['one', 'two'].map((name) => ({ file: `${name}.js`, module: artifact(name) })),
    calibrate: async () => calibration(true),
    checkAdapters: async () => {},
    checkBase: async () => ({ rollouts: artifact('base check'), problems: [], warnings: [] }),
    rollOut: async (input) => {
      seen.rollOuts.push(input);
      return summary(input);
    },
    train: async (input) => {
      const { steps, groupsPerStep, groupSize, checkpointEvery } = input.training;
      Context.current().heartbeat({ kind: 'train', step: 1, steps });
      const { name } = input;
      seen.trainings.push({ name, steps });
      const saved = Array.from({ length: steps }, (_, n) => n + 1).filter(
        (step) => step % checkpointEvery === 0 || step === steps,
      );
      return {
        steps,
        rollouts: steps * groupsPerStep * groupSize,
        brokenRollouts: 0,
        promptTokens: 1,
        completionTokens: 1,
        metrics: artifact('metrics'),
        checkpoints: saved.map((step) => ({ step, policy: adapter(`${input.name}-${step}`) })),
      };
    },
    searchPrompt: async ({ name, rollouts, base, seed, searchSeed }) => {
      Context.current().heartbeat({ kind: 'train', step: 1 });
      seen.searches.push({ name, rollouts, seed, searchSeed });
      const policy = (text: string) => ({ base, adapters: [], prompt: { text, place: 'before' as const } });
      const found = [1, 2].map((step) => ({ step, rollouts: (step * rollouts) / 2, policy: policy(`prompt ${step}`) }));
      return {
        ...{ steps: 2, rollouts, brokenRollouts: 0, promptTokens: 1, completionTokens: 1 },
        ...{ metrics: artifact('search'), checkpoints: found },
      };
    },
    findGains: async ({ adapters }) => ({ gaining: adapters.map(({ name }) => name) }),
    fitRouter: async () => ({ router: artifact('router') }),
    recallDecision: async () => null,
    keepDecision: async () => undefined,
    writeReport: async ({ record }) => {
      seen.record = record;
      return { report: artifact('report'), verdict: 'Ship trace.', file: '/home/report.html' };
    },
    ...replaced,
  };
  return { activities, seen };
}
