/** The rounds of a capability's environment: what goes back to the synthesizer, what a round counts as, and how they end. */
import type { Activities } from './fake-activities';
import type { FailureType } from '../../src/domain/failures';
import { campaignsOn } from './campaigns';
import { timeSkipping } from './environment';
import { artifact, calibration, failure, REFUSE, selecting, summary, TELL } from './fake-activities';

const { play } = campaignsOn(timeSkipping, 'synthesis');
const FINDING = 'doing nothing scores 1.0';
const EASY = 'success rate 0.9 is above 0.6';
const one = selecting(TELL);
const missed = { calibrate: async () => calibration(false) };

/** A campaign of one capability: what each version was written after, and what that came to. */
async function rounds(replaced: Partial<Activities>, fields: object = { calibration: { maxRounds: 3 } }) {
  const { record, asked, progress } = await play({ ...fields }, { ...one, ...replaced });
  const [capability] = record.capabilities!;
  const previous = asked('synthesize').map((input) => input.previous);
  const tested = capability!.rounds.map(({ selfTest }) => selfTest.passed);
  return { record, asked, capability: capability!, previous, tested, child: (await progress()).children[0]! };
}

test('an environment outside the bands is made again with the report, and given up after the last round', async () => {
  const { capability, previous, record } = await rounds(missed);
  expect(previous.map((given) => given?.calibration?.accepted)).toEqual([undefined, false, false]);
  expect(capability).toMatchObject({ status: 'not_trained', reason: EASY, rounds: { length: 3 } });
  expect(record.evaluation?.policies.map(({ name }) => name)).toEqual(['base', 'trace']);
});

test('findings of the self-test go back to the synthesizer within the rounds', async () => {
  const { capability, previous, tested } = await rounds({
    selfTest: async ({ module }) =>
      module.sha256.endsWith('-1') ? { passed: false, findings: [FINDING] } : { passed: true, findings: [] },
  });
  expect(previous.map((given) => given?.findings)).toEqual([undefined, [FINDING]]);
  expect([capability.status, tested]).toEqual(['completed', [false, true]]);
});

test('a module that breaks in play goes back to the synthesizer within the rounds; what is no fault of it does not', async () => {
  const breaking = (type: FailureType): Pick<Activities, 'rollOut'> => ({
    rollOut: async (input) => {
      if (input.title.endsWith('calibration, round 1')) throw failure(type, 'make is not a function');
      const errors = input.title.endsWith('calibration, round 2') ? { BadEnvironment: 3 } : {};
      return { ...summary(input), errors };
    },
  });
  const { capability, previous, tested } = await rounds(breaking('BadEnvironment'));
  const played = 'in calibration rollouts: ';
  expect(previous.map((given) => given?.findings)).toEqual([
    undefined,
    [`${played}make is not a function`],
    [`${played}3 attempts ended with BadEnvironment`],
  ]);
  expect([capability.status, tested]).toEqual(['completed', [false, false, true]]);
  expect((await rounds(breaking('PolicyAnswerInvalid'))).capability.status).toBe('failed');
});

describe('a synthesizer that has nothing more to give ends the rounds', () => {
  const spent = 'budget.tokens is 10: raise budget.tokens and run the campaign again';
  test.each<[type: FailureType, message: string, first: string]>([
    ['CannotSynthesize', 'no generator', 'no generator'],
    ['AnswerInvalid', 'there is no code in the reply', 'there is no code in the reply'],
    ['BudgetSpent', spent, `budget spent: ${spent}`],
  ])('%s: its capability is not trained, and other capabilities continue', async (...row) => {
    const [type, message, reason] = row;
    const { record, asked, progress } = await play(
      {},
      {
        synthesize: async ({ candidate, round }) => {
          if (candidate.name === REFUSE || round === 2) throw failure(type, message);
          return artifact(`v${round}`);
        },
        ...missed,
      },
    );
    expect(asked('synthesize')).toHaveLength(3);
    expect(record.capabilities).toMatchObject([
      { name: REFUSE, status: 'not_trained', reason, rounds: [] },
      { name: TELL, status: 'not_trained', reason: `${EASY}; ${reason}`, rounds: [{}] },
    ]);
    expect((await progress()).children).toMatchObject([
      { status: 'not_trained', detail: reason },
      { status: 'not_trained' },
    ]);
  });
});

describe('synthesizer target_tasks', () => {
  const fields = { synthesizer: { kind: 'target_tasks' } };

  test('trains on tasks of the target that labels chose, and holds others of them out', async () => {
    const { record, asked } = await play(fields, one);
    expect(asked('chooseTasks')).toMatchObject([{ capability: TELL, labels: [{}, {}], perStep: 32 }]);
    const chosen = (part: string) => ({ kind: 'plan', plan: artifact('chosen'), part });
    expect(asked('train')).toMatchObject([{ environment: { kind: 'shop' }, tasks: chosen('train') }]);
    const own = asked('rollOut').filter(
      ({ tasks }) => tasks.kind === 'plan' && tasks.plan.sha256 === artifact('chosen').sha256,
    );
    // Two checkpoints and the base.
    expect(own.map(({ tasks }) => tasks)).toEqual(Array(3).fill(chosen('validation')));
    expect(record.capabilities).toMatchObject([{ status: 'completed', rounds: [], tasks: { counts: { mixed: 2 } } }]);
    expect([asked('synthesize'), asked('calibrate')]).toEqual([[], []]);
  });

  test('a capability with too few labelled tasks is not trained', async () => {
    const chooseTasks = () => Promise.reject(failure('CannotSynthesize', 'too few'));
    const { record } = await play(fields, { ...one, chooseTasks });
    expect(record.capabilities).toMatchObject([{ status: 'not_trained', reason: 'too few' }]);
  });
});
