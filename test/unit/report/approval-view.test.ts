/** What is shown of an environment that waits for approval: its source, and the figures that it was judged by. */
import type { CalibrationReport, SynthesisRound } from '../../../src/domain/calibration';
import { environmentView } from '../../../src/report/build/approval';
import { scoredRollout } from '../../support/scored-rollout';
import { campaignStore } from './stored';

const { store, put, batch } = campaignStore();

const candidate = { name: 'tell_what_is_asked', definition: 'Tells.', examples: [] };

/** Rollouts with these rewards; the first `hinted` of them were shown the hint. */
const played = (title: string, rewards: number[], hinted = 0) =>
  batch(
    'calibration',
    title,
    rewards.map((reward, n) => ({
      ...scoredRollout({ name: `${title} ${n}`, task: `seed-${title}-${n}`, reward }),
      ...(n < hinted && { hinted: true }),
    })),
  );

const judged = (meanReward: number, reasons: string[]) =>
  ({
    ...{ accepted: reasons.length === 0, reasons, meanReward },
    ...{ successRate: 0.3, allZero: 0.1, allSuccess: 0, informative: 0.7 },
  }) as CalibrationReport;

const roundOf = async (round: number, hintedReasons: string[]): Promise<SynthesisRound> => ({
  round,
  module: await put(`const round = ${round};\n`, 'text/javascript'),
  selfTest: { passed: true, findings: [], hints: true },
  calibration: judged(0.01, ['mean reward 0.01 is too low']),
  calibrationRollouts: await played(`plain-${round}`, [0, 0]),
  aided: [
    {
      hints: 0.5,
      calibration: judged(0.44, hintedReasons),
      calibrationRollouts: await played(`hinted-${round}`, [1, 0], 1),
    },
  ],
});

test('an environment that was accepted with hints is shown by its calibration with hints', async () => {
  const rejected: SynthesisRound['decision'] = { kind: 'reject', reason: 'too narrow', by: 'person', at: 1 };
  const rounds = [
    await roundOf(1, ['mean reward 0.7 is too high']),
    { ...(await roundOf(2, [])), decision: rejected },
    await roundOf(3, []),
  ];
  const environment = await environmentView({ store, candidate, rounds });
  expect(environment).toMatchObject({ hints: 0.5, calibration: { meanReward: 0.44 } });
  expect(environment).toMatchObject({ module: rounds[2]!.module, source: 'const round = 3;\n' });
  expect(environment.rollouts).toEqual(rounds[2]!.aided![0]!.calibrationRollouts.ref);
  const hinted = 'with hints on 50% of the rollouts';
  expect(environment.earlier.map(({ summary }) => summary)).toEqual([
    `mean reward 0.01 is too low; ${hinted}: mean reward 0.7 is too high`,
    `accepted ${hinted}, rejected: too narrow`,
  ]);
});

test('without hints nothing is said of them', async () => {
  const { aided, ...plain } = await roundOf(4, []);
  expect(aided).toHaveLength(1);
  const environment = await environmentView({ store, candidate, rounds: [plain, { ...plain, round: 5 }] });
  expect(environment).toMatchObject({
    calibration: { meanReward: 0.01 },
    earlier: [{ summary: plain.calibration!.reasons[0] }],
  });
  expect(environment.hints).toBeUndefined();
});
