/** What is shown of an environment that waits for approval: its source, and the figures that it was judged by. */
import type { CalibrationReport, SynthesisRound } from '../../../src/domain/calibration';
import { environmentView } from '../../../src/report/build/approval';
import { scoredRollout } from '../../support/scored-rollout';
import { campaignStore } from './stored';

const { store, put, batch } = campaignStore();

const candidate = { name: 'tell_what_is_asked', definition: 'Tells.', examples: [] };

const played = (title: string, rewards: number[]) =>
  batch(
    'calibration',
    title,
    rewards.map((reward, n) => scoredRollout({ name: `${title} ${n}`, task: `seed-${title}-${n}`, reward })),
  );

const judged = (meanReward: number, reasons: string[]) =>
  ({
    ...{ accepted: reasons.length === 0, reasons, meanReward },
    ...{ successRate: 0.3, allZero: 0.1, allSuccess: 0, informative: 0.7 },
  }) as CalibrationReport;

const roundOf = async (round: number, reasons: string[]): Promise<SynthesisRound> => ({
  round,
  module: await put(`const round = ${round};\n`, 'text/javascript'),
  selfTest: { passed: true, findings: [] },
  calibration: judged(0.44, reasons),
  calibrationRollouts: await played(`${round}`, [1, 0]),
});

test('an environment is shown by its source and its calibration, with what was found of earlier rounds', async () => {
  const rejected: SynthesisRound['decision'] = { kind: 'reject', reason: 'too narrow', by: 'person', at: 1 };
  const rounds = [
    await roundOf(1, ['mean reward 0.7 is too high']),
    { ...(await roundOf(2, [])), decision: rejected },
    await roundOf(3, []),
  ];
  const environment = await environmentView({ store, candidate, rounds });
  expect(environment).toMatchObject({ module: rounds[2]!.module, source: 'const round = 3;\n' });
  expect(environment.calibration).toMatchObject({ meanReward: 0.44 });
  expect(environment.rollouts).toEqual(rounds[2]!.calibrationRollouts!.ref);
  expect(environment.earlier.map(({ summary }) => summary)).toEqual([
    'mean reward 0.7 is too high',
    'rejected: too narrow',
  ]);
});
