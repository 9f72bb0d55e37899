/** Approval: what waits for a person, what each answer does, and that a decision outlives restarts. */
import { WorkflowUpdateFailedError, type WorkflowHandle } from '@temporalio/client';
import type { Answer, Decision } from '../../src/domain/approval';
import type { ApprovalRequest, ChildProgress } from '../../src/workflows/messages';
import { campaignsOn, failureOf, latch, until } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, artifact, calibration, failure, REFUSE, selecting, TELL } from './fake-activities';

jest.setTimeout(120_000);
const { env, begin, play, fail } = campaignsOn(timeSkipping, 'approval');
const capabilities = (fields: object = {}) => ({ approval: { capabilities: true, ...fields } });
const environments = (fields: object = {}, maxRounds = 3) => ({
  approval: { environments: true, ...fields },
  calibration: { maxRounds },
});
const one = selecting(TELL);

/** What is asked, once something is. */
const asked = (handle: WorkflowHandle): Promise<ApprovalRequest> =>
  until(() => handle.query<ApprovalRequest | null>('approval').catch(() => null));
const decide = (handle: WorkflowHandle, answer: object) =>
  handle.executeUpdate<Decision, [Answer]>('decide', { args: [answer as Answer] });
const approve = (handle: WorkflowHandle, approval: object = {}) => decide(handle, { kind: 'approve', ...approval });
const reject = (handle: WorkflowHandle, rejection: object) => decide(handle, { kind: 'reject', ...rejection });
const refused = async (update: Promise<unknown>): Promise<string> => {
  const error: unknown = await update.catch((thrown: unknown) => thrown);
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? '';
  throw new Error(`not refused: ${String(error)}`);
};
/** Decisions that outlive a workflow. */
function keeping() {
  const kept = new Map<string, Decision>();
  const keep: Partial<Activities> = {
    recallDecision: async ({ about, of }) => kept.get(`${about} ${of}`) ?? null,
    keepDecision: async ({ about, of, decision }) => void kept.set(`${about} ${of}`, decision),
  };
  return { kept, keep };
}

describe('of capabilities', () => {
  test('nothing begins before somebody approves; what waits is told', async () => {
    const { handle, progress, seen } = await begin(capabilities());
    const { waiting, capabilities: shown } = await asked(handle);
    expect(waiting).toMatchObject({ what: 'capabilities', of: 'selection', reminded: false });
    expect(shown).toMatchObject({ rollouts: artifact('base rollouts'), selection: { labels: { length: 2 } } });
    expect(await progress()).toMatchObject({ waiting: { names: [REFUSE, TELL] }, children: [] });
    expect(await approve(handle, { of: 'selection' })).toMatchObject({ kind: 'approve', by: 'person' });
    await handle.result();
    expect((await progress()).waiting).toBeUndefined();
    expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(seen.record?.selection?.decision).toMatchObject({ kind: 'approve' });
  });

  test('an edit words definitions anew and leaves out what is not in it; a campaign that is started again does not ask again', async () => {
    const { kept, keep } = keeping();
    const definition = 'says all that was asked for';
    let broken = true;
    const edited = await begin(capabilities(), ({ train }) => ({
      ...keep,
      train: async (input) => {
        if (broken) throw failure('ArtifactDamaged', 'gone');
        return train(input);
      },
    }));
    await asked(edited.handle);
    await approve(edited.handle, { capabilities: [{ name: TELL, definition }] });
    expect(await failureOf(edited.handle.result())).toMatchObject({ type: 'ArtifactDamaged' });
    expect(kept.size).toBe(1);
    broken = false;
    await edited.again();
    const candidate = { name: TELL, definition, examples: [] };
    expect(edited.asked('synthesize').map((input) => input.candidate)).toEqual([candidate, candidate]);
    expect(edited.seen.record?.selection?.selected).toMatchObject([{ candidate }]);
  });

  test('those that are rejected are left out; with all of them nothing is selected', async () => {
    const some = await begin(capabilities(), {}, { until: 'selection' });
    await asked(some.handle);
    await reject(some.handle, { names: [TELL], reason: 'the agent may not tell it' });
    await some.handle.result();
    expect(some.seen.record?.selection).toMatchObject({ selected: [{ candidate: { name: REFUSE } }] });
    const all = await begin(capabilities());
    await asked(all.handle);
    await reject(all.handle, { reason: 'these are no skills' });
    await all.handle.result();
    expect(all.seen.record).toMatchObject({
      selection: { selected: [], decision: { reason: 'these are no skills' } },
      capabilities: [],
    });
  });

  test('what decides nothing is refused, and leaves the campaign as it is', async () => {
    const [held, begun] = [latch(), latch()];
    const discover = async () => {
      begun.open();
      await held.opened;
      return { ref: artifact('candidates'), selects: 'by labels' as const };
    };
    const { handle } = await begin(capabilities(), { discover }, { until: 'selection' });
    await begun.opened;
    await refused(approve(handle));
    held.open();
    await asked(handle);
    const known = { name: TELL, definition: 'd' };
    const edit = (...list: object[]) => ({ kind: 'approve', capabilities: list });
    for (const answer of [
      edit({ name: 'another_one', definition: 'd' }),
      edit(known, known),
      edit({ name: TELL, definition: ' ' }),
      edit(),
      { kind: 'approve', definition: 'd' },
      { kind: 'approve', module: artifact('m') },
      { kind: 'reject' },
      { kind: 'reject', names: ['another_one'], reason: 'r' },
      { kind: 'approve', of: 'an earlier one' },
    ])
      await refused(decide(handle, answer));
    await approve(handle);
    await refused(reject(handle, { reason: 'too late' }));
    await handle.result();
  });

  test.each([
    ['approve', [REFUSE, TELL], 1],
    // Nobody's silence leaves a capability out for ever.
    ['reject', [], 0],
  ] as const)('when nobody answers in time, %s decides', async (onTimeout, left, keeps) => {
    const { kept, keep } = keeping();
    const fields = capabilities({ remindHours: 1, timeoutHours: 48, onTimeout });
    const { handle, progress, seen } = await begin(fields, keep, { until: 'selection' });
    const { waiting } = await asked(handle);
    expect((waiting.until ?? 0) - (waiting.since ?? 0)).toBe(48 * 3600 * 1000);
    await env().sleep('2 hours');
    expect((await progress()).waiting).toMatchObject({ reminded: true });
    await handle.result();
    expect(seen.record?.selection?.selected.map(({ candidate }) => candidate.name)).toEqual(left);
    expect(seen.record?.selection?.decision).toMatchObject({ kind: onTimeout, by: 'timeout' });
    expect(kept.size).toBe(keeps);
  });

  test('when nobody answers in time, fail says so', async () => {
    const { reason, seen } = await fail(capabilities({ timeoutHours: 2 }));
    const message = expect.stringMatching(/within 2 h.*asks again/) as string;
    expect(reason).toMatchObject({ type: 'NotApproved', message });
    expect(seen.record).toBeUndefined();
  });
});

describe('of environments', () => {
  test('what a rejection says goes back to the synthesizer as one, with the figures, and takes a round', async () => {
    const { handle, child: childOf, seen, asked: askedFor } = await begin(environments(), one);
    const child = childOf(TELL);
    const { waiting, environment } = await asked(child);
    expect(waiting).toMatchObject({ what: 'environment', of: `${TELL}-1`, names: [TELL], round: 1 });
    expect(environment?.rounds).toMatchObject([{ round: 1, calibration: { accepted: true } }]);
    expect(await child.query<ChildProgress>('progress')).toMatchObject({
      ...{ phase: 'approval', calibration: '40%' },
      waiting: { round: 1 },
    });
    for (const [approval, said] of [
      [{ capabilities: [{ name: TELL, definition: 'd' }] }, /^capabilities: an environment waits/],
      [{ module: artifact(`${TELL}-1`) }, /^module: it is the text that/],
      [{ module: 'text' }, /^module: /],
    ] as const)
      expect(await refused(approve(child, approval))).toMatch(said);
    const rejection = 'the user gives the order id unasked';
    await reject(child, { of: `${TELL}-1`, reason: rejection });
    await until(async () => (await asked(child)).waiting.round === 2);
    expect(await refused(approve(child, { of: `${TELL}-1` }))).toMatch(/^already decided: rejected: the user gives/);
    await approve(child);
    await handle.result();
    expect(askedFor('synthesize').map(({ previous }) => previous)).toEqual([
      undefined,
      {
        ...{ module: artifact(`${TELL}-1`), findings: [], rejection, calibration: calibration(true) },
        attempts: artifact(`${TELL}: calibration, round 1`),
      },
    ]);
    expect(seen.record?.capabilities).toMatchObject([
      { status: 'completed', rounds: [{ decision: { kind: 'reject' } }, { decision: { kind: 'approve' } }] },
    ]);
  });

  const edit = { kind: 'approve', module: artifact('edited') };
  const second = { round: 2, module: artifact('edited') };
  test.each<[what: string, answer: object, passed: boolean, calibrated: number, ended: object]>([
    [
      'one that is rejected is not approved',
      { kind: 'reject', reason: 'too far from the target' },
      true,
      1,
      {
        status: 'not_trained',
        reason: 'a person read this version and rejected it: too far from the target',
        rounds: [{ round: 1 }],
      },
    ],
    ['an edited text is tested and calibrated', edit, true, 2, { status: 'completed', rounds: [{ round: 1 }, second] }],
    ['one that fails is not', edit, false, 1, { status: 'not_trained', rounds: [{ round: 1 }, second] }],
  ])('in the last round, %s', async (_, answer, passed, calibrated, ended) => {
    const {
      handle,
      child,
      seen,
      asked: askedFor,
    } = await begin(environments({}, 1), {
      ...one,
      selfTest: async ({ module }) => ({ passed: passed || module.sha256 !== 'edited', findings: ['it ends at once'] }),
    });
    await asked(child(TELL));
    await decide(child(TELL), answer);
    await handle.result();
    expect(seen.record?.capabilities).toMatchObject([ended]);
    expect(askedFor('synthesize')).toHaveLength(1);
    expect(askedFor('calibrate')).toHaveLength(calibrated);
    const isTrained = seen.record?.capabilities?.[0]?.status === 'completed';
    expect(askedFor('train')).toHaveLength(isTrained ? 1 : 0);
  });

  test.each([
    ['reject', { status: 'not_trained', reason: 'it was not approved within 1 h (approval.timeoutHours)' }],
    [
      'fail',
      { status: 'failed', reason: expect.stringMatching(/^NotApproved: the environment of tell_what/) as string },
    ],
  ])('when nobody answers in time, %s ends the capability alone', async (onTimeout, ended) => {
    const { record, asked: askedFor } = await play(environments({ timeoutHours: 1, onTimeout }), one);
    expect(record.capabilities).toMatchObject([ended]);
    // The synthesizer is asked for nothing more.
    expect(askedFor('synthesize')).toHaveLength(1);
    expect(record.evaluation?.policies.map(({ name }) => name)).toEqual(['base', 'trace']);
  });

  test('one that is outside the bands is nobody’s question', async () => {
    const { record } = await play(environments(), { ...one, calibrate: async () => calibration(false) });
    expect(record.capabilities).toMatchObject([{ status: 'not_trained' }]);
  });
});
