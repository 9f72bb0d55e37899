/** Approval: what waits for a person, what each answer does, and that a decision outlives restarts. */
import { WorkflowUpdateFailedError, type WorkflowHandle } from '@temporalio/client';
import type { Answer, Decision } from '../../src/domain/approval';
import type { ApprovalRequest, ChildProgress } from '../../src/workflows/messages';
import { campaignsOn, failureOf, latch, until } from './campaigns';
import { timeSkipping } from './environment';
import { type Activities, artifact, calibration, failure, REFUSE, selecting, TELL } from './fake-activities';

const { begin } = campaignsOn(timeSkipping, 'approval');
const capabilities = { approval: { capabilities: true } };
const environments = (maxRounds = 3) => ({ approval: { environments: true }, calibration: { maxRounds } });
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
    const { handle, progress, seen } = await begin(capabilities);
    const { waiting, capabilities: shown } = await asked(handle);
    expect(waiting).toMatchObject({ what: 'capabilities', of: 'selection' });
    expect(shown).toMatchObject({ rollouts: artifact('base rollouts'), selection: { labels: { length: 2 } } });
    expect(await progress()).toMatchObject({ waiting: { names: [REFUSE, TELL] }, children: [] });
    expect(await approve(handle, { of: 'selection' })).toMatchObject({ kind: 'approve' });
    await handle.result();
    expect((await progress()).waiting).toBeUndefined();
    expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(seen.record?.selection?.decision).toMatchObject({ kind: 'approve' });
  });

  test('a campaign that is started again does not ask again', async () => {
    const { kept, keep } = keeping();
    let broken = true;
    const begun = await begin(capabilities, ({ train }) => ({
      ...keep,
      train: async (input) => {
        if (broken) throw failure('ArtifactDamaged', 'gone');
        return train(input);
      },
    }));
    await asked(begun.handle);
    await reject(begun.handle, { names: [REFUSE], reason: 'no skill' });
    expect(await failureOf(begun.handle.result())).toMatchObject({ type: 'ArtifactDamaged' });
    expect(kept.size).toBe(1);
    broken = false;
    await begun.again();
    expect(begun.seen.record?.selection).toMatchObject({
      ...{ selected: [{ candidate: { name: TELL } }], decision: { kind: 'reject', reason: 'no skill' } },
    });
  });

  test('those that are rejected are left out; with all of them nothing is selected', async () => {
    const some = await begin(capabilities, {}, { until: 'selection' });
    await asked(some.handle);
    await reject(some.handle, { names: [TELL], reason: 'the agent may not tell it' });
    await some.handle.result();
    expect(some.seen.record?.selection).toMatchObject({ selected: [{ candidate: { name: REFUSE } }] });
    const all = await begin(capabilities);
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
    const { handle } = await begin(capabilities, { discover }, { until: 'selection' });
    await begun.opened;
    await refused(approve(handle));
    held.open();
    await asked(handle);
    for (const answer of [
      { kind: 'approve', definition: 'd' },
      { kind: 'reject' },
      { kind: 'reject', names: ['another_one'], reason: 'r' },
      { kind: 'approve', of: 'an earlier one' },
    ])
      await refused(decide(handle, answer));
    await approve(handle);
    await refused(reject(handle, { reason: 'too late' }));
    await handle.result();
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
    expect(await refused(reject(child, { names: [TELL], reason: 'r' }))).toMatch(/^names: an environment waits/);
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

  test('one that is rejected in the last round is not trained on', async () => {
    const { handle, child, seen, asked: askedFor } = await begin(environments(1), one);
    await asked(child(TELL));
    await reject(child(TELL), { reason: 'too far from the target' });
    await handle.result();
    const reason = 'a person read this version and rejected it: too far from the target';
    expect(seen.record?.capabilities).toMatchObject([{ status: 'not_trained', reason, rounds: [{ round: 1 }] }]);
    expect(askedFor('synthesize')).toHaveLength(1);
    expect(askedFor('train')).toHaveLength(0);
  });
});
