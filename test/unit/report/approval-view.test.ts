/** What is shown of an environment that waits for approval: the figures and the episodes that it was judged by. */
import type { CalibrationReport, SynthesisRound } from '../../../src/domain/calibration';
import type { Message } from '../../../src/domain/messages';
import { environmentView } from '../../../src/report/build/approval';
import { approvalText } from '../../../src/report/sections/approval';
import { scoredRollout } from '../../support/scored-rollout';
import { campaignStore } from './stored';

const { store, put, batch } = campaignStore();

const candidate = { name: 'tell_what_is_asked', definition: 'Tells.', examples: [] };
const messages: Message[] = [{ role: 'user', content: 'Cancel it.' }];

/** Rollouts with these rewards; the first `hinted` of them were shown the hint. */
const played = (title: string, rewards: number[], hinted = 0) =>
  batch(
    'calibration',
    title,
    rewards.map((reward, n) => ({
      ...scoredRollout({ name: `${title} ${n}`, task: `seed-${title}-${n}`, reward }),
      messages,
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
  expect(environment.episodes).toMatchObject([{ task: 'seed-hinted-3-0', hinted: true }, { task: 'seed-hinted-3-1' }]);
  expect(environment.episodes[1]!.hinted).toBeUndefined();
  const hinted = 'with hints on 50% of the rollouts';
  expect(environment.earlier.map(({ summary }) => summary)).toEqual([
    `mean reward 0.01 is too low; ${hinted}: mean reward 0.7 is too high`,
    `accepted ${hinted}, rejected: too narrow`,
  ]);

  const view = { waiting: { of: 'w', names: [candidate.name] }, environment };
  const text = approvalText(view);
  expect(text).toContain(`Base model, ${hinted}: mean reward 0.44`);
  expect(text).toMatch(
    /seed-hinted-3-0: passed, reward 1\.00, shown the hint,[^]*seed-hinted-3-1: failed, reward 0\.00, ended/,
  );
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
  const text = approvalText({ waiting: { of: 'w', names: [candidate.name] }, environment });
  expect(text).toContain('Base model: mean reward 0.01');
  expect(text).not.toContain('hint');
});
