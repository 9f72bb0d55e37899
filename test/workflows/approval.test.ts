/** Approval: what waits for a person, what each answer does, and that a decision outlives workers and restarts. */
import { ApplicationFailure } from '@temporalio/common';
import { WorkflowUpdateFailedError, type WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import type { Answer, Decision } from '../../src/domain/approval';
import type { Asked, CampaignProgress, ChildProgress } from '../../src/workflows/messages';
import { devServer, quiet, start, timeSkipping, withWorkers, workflowBundle } from './environment';
import { artifact, calibration, config, fakeActivities, type Activities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
const CHILD = 'tell_what_is_asked';
const named = (fields: object = {}) => config({ name: `approval-${n++}`, arms: [], ...fields });
const capabilities = (fields: object = {}) => named({ approval: { capabilities: true, ...fields } });
const environments = (fields: object = {}) =>
  named({ approval: { environments: true, ...fields }, calibration: { maxRounds: 3 } });

beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
/** What is asked, once something is. */
async function asked(handle: WorkflowHandle): Promise<Asked> {
  for (;;) {
    const answer = await handle.query<Asked | null>('approval').catch(() => null);
    if (answer) return answer;
    await pause();
  }
}
const approve = (handle: WorkflowHandle, approval: object = {}) =>
  handle.executeUpdate<Decision, [Answer]>('decide', { args: [{ kind: 'approve', ...approval }] });
const reject = (handle: WorkflowHandle, rejection: object) =>
  handle.executeUpdate<Decision, [Answer]>('decide', { args: [{ kind: 'reject', ...rejection } as Answer] });
const refused = async (update: Promise<unknown>): Promise<string> => {
  const error: unknown = await update.catch((failure: unknown) => failure);
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? '';
  throw new Error(`not refused: ${String(error)}`);
};

/** One capability is selected. */
function oneCapability(replaced: Partial<Activities> = {}) {
  const candidate = { name: CHILD, definition: 'x', examples: [] };
  const select = async () => ({ ref: artifact('selection'), selected: [{ candidate, votes: 10 }] });
  return fakeActivities({ select, ...replaced });
}
const childOf = (handle: WorkflowHandle) => env.client.workflow.getHandle(`${handle.workflowId}/capability/${CHILD}`);
/** Decisions that outlive a workflow. */
function keeping(): Partial<Activities> & { kept: Map<string, Decision> } {
  const kept = new Map<string, Decision>();
  return {
    kept,
    recallDecision: async ({ about, of }) => kept.get(`${about} ${of}`) ?? null,
    keepDecision: async ({ about, of, decision }) => void kept.set(`${about} ${of}`, decision),
  };
}

describe('of capabilities', () => {
  test('nothing begins before somebody approves; what waits is told', async () => {
    const { activities, seen } = fakeActivities();
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: capabilities() });
      const { waiting, capabilities: shown } = await asked(handle);
      expect(waiting).toMatchObject({ what: 'capabilities', of: 'selection', reminded: false });
      expect(shown).toMatchObject({ rollouts: artifact('base rollouts'), selection: { labels: { length: 10 } } });
      const progress = await handle.query<CampaignProgress>('progress');
      expect(progress.waiting?.names).toEqual(['refuse_what_is_forbidden', CHILD]);
      expect(progress.children).toEqual([]);
      expect(await approve(handle, { of: 'selection' })).toMatchObject({ kind: 'approve', by: 'person' });
      await handle.result();
      expect((await handle.query<CampaignProgress>('progress')).waiting).toBeUndefined();
    });
    expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained', 'trained']);
    expect(seen.record?.selection?.decision).toMatchObject({ kind: 'approve' });
  });

  test('an edit words definitions anew and leaves out what is not in it', async () => {
    const written: unknown[] = [];
    const { activities, seen } = fakeActivities({
      synthesize: async ({ candidate, round }) => {
        written.push(candidate);
        return artifact(`${candidate.name}-${round}`);
      },
    });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: capabilities() });
      await asked(handle);
      await approve(handle, { capabilities: [{ name: CHILD, definition: 'says all that was asked for' }] });
      await handle.result();
    });
    expect(written).toEqual([{ name: CHILD, definition: 'says all that was asked for', examples: [] }]);
    expect(seen.record?.selection?.selected.map(({ candidate }) => candidate.name)).toEqual([CHILD]);
  });

  test('those that are rejected are left out; with all of them nothing is selected', async () => {
    const { activities, seen } = fakeActivities();
    const discover = jest.spyOn(activities, 'discover');
    await withWorkers(env, activities, async () => {
      const some = await start(env, { campaign: capabilities() });
      await asked(some);
      await reject(some, { names: [CHILD], reason: 'the agent may not tell it' });
      await some.result();
      expect(seen.record?.capabilities?.map(({ name }) => name)).toEqual(['refuse_what_is_forbidden']);
      const all = await start(env, { campaign: capabilities() });
      await asked(all);
      await reject(all, { reason: 'these are no skills' });
      await all.result();
    });
    expect(discover).toHaveBeenCalledTimes(2);
    expect(seen.record?.selection).toMatchObject({ selected: [], decision: { reason: 'these are no skills' } });
    expect(seen.record?.capabilities).toEqual([]);
  });

  test('what decides nothing is refused in words, and leaves the campaign as it is', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let begun: () => void = () => undefined;
    const discovers = new Promise<void>((resolve) => (begun = resolve));
    const { activities } = fakeActivities({
      discover: async () => {
        begun();
        await held;
        return { ref: artifact('candidates'), selects: 'by labels' };
      },
    });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: capabilities(), until: 'selection' });
      await discovers;
      expect(await refused(approve(handle))).toBe('nothing waits for approval here');
      release();
      await asked(handle);
      const edit = (...list: object[]) => refused(approve(handle, { capabilities: list }));
      const known = { name: CHILD, definition: 'd' };
      expect(await edit({ name: 'another_one', definition: 'd' })).toBe(
        `unknown capability another_one; those that wait for approval: refuse_what_is_forbidden, ${CHILD}`,
      );
      expect(await edit(known, known)).toBe(`${CHILD} is named twice; name each capability once`);
      expect(await edit({ name: CHILD, definition: ' ' })).toBe('capabilities.0.definition: it is blank');
      expect(await edit()).toBe('capabilities: it is empty: reject all, with a reason');
      expect(await refused(approve(handle, { definition: 'd' }))).toMatch(/Unrecognized key: "definition"/);
      expect(await refused(approve(handle, { module: artifact('m') }))).toMatch(/^module: capabilities wait/);
      expect(await refused(reject(handle, {}))).toMatch(/^reason: /);
      expect(await refused(reject(handle, { names: ['another_one'], reason: 'r' }))).toMatch(/^unknown capability/);
      expect(await refused(approve(handle, { of: 'an earlier one' }))).toMatch(
        /^what waits now is not what was looked/,
      );
      await approve(handle);
      expect(await refused(reject(handle, { reason: 'too late' }))).toMatch(/^already decided: approved; nothing else/);
      await handle.result();
    });
  });

  test.each([
    ['approve', ['refuse_what_is_forbidden', CHILD], true],
    ['reject', [], false],
  ] as const)('when nobody answers in time, %s decides', async (onTimeout, left, isKept) => {
    const { kept, ...keep } = keeping();
    const { activities, seen } = fakeActivities(keep);
    const campaign = capabilities({ remindHours: 1, timeoutHours: 48, onTimeout });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign, until: 'selection' });
      const { waiting } = await asked(handle);
      expect((waiting.until ?? 0) - (waiting.since ?? 0)).toBe(48 * 3600 * 1000);
      await env.sleep('2 hours');
      expect((await handle.query<CampaignProgress>('progress')).waiting).toMatchObject({ reminded: true });
      await handle.result();
    });
    expect(seen.record?.selection?.selected.map(({ candidate }) => candidate.name)).toEqual(left);
    expect(seen.record?.selection?.decision).toMatchObject({ kind: onTimeout, by: 'timeout' });
    // Nobody's silence leaves a capability out for ever.
    expect(kept.size).toBe(isKept ? 1 : 0);
  });

  test('when nobody answers in time, fail says so', async () => {
    const { activities, seen } = fakeActivities();
    const campaign = capabilities({ timeoutHours: 2 });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign });
      const cause = { type: 'NotApproved', message: expect.stringMatching(/within 2 h.*asks again/) as string };
      await expect(handle.result()).rejects.toMatchObject({ cause });
    });
    expect(seen.record).toBeUndefined();
  });

  test('a campaign that is started again does not ask again', async () => {
    const { kept, ...keep } = keeping();
    const { activities, seen } = fakeActivities(keep);
    const { train } = activities;
    activities.train = () => Promise.reject(ApplicationFailure.nonRetryable('gone', 'ArtifactDamaged'));
    const campaign = capabilities();
    await withWorkers(env, activities, async () => {
      const first = await start(env, { campaign });
      await asked(first);
      await approve(first, { capabilities: [{ name: CHILD, definition: 'anew' }] });
      await expect(first.result()).rejects.toThrow();
      activities.train = train;
    });
    expect(kept.size).toBe(1);
    await withWorkers(env, activities, async () => {
      const second = await start(env, { campaign });
      await second.result();
    });
    expect(seen.record?.selection?.selected).toMatchObject([{ candidate: { definition: 'anew' } }]);
  });

  test('a decision of a paused campaign is taken, and what follows waits for resume', async () => {
    const { activities, seen } = fakeActivities();
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: capabilities() });
      await asked(handle);
      await handle.signal('pause');
      await approve(handle);
      await pause();
      expect(await handle.query<CampaignProgress>('progress')).toMatchObject({ paused: true, children: [] });
      await handle.signal('resume');
      await handle.result();
    });
    expect(seen.record?.capabilities).toHaveLength(2);
  });
});

describe('of environments', () => {
  test('what a rejection says goes back to the synthesizer as one, with the figures, and takes a round', async () => {
    const given: unknown[] = [];
    const { activities, seen } = oneCapability({
      synthesize: async ({ candidate, round, previous }) => {
        given.push(previous);
        return artifact(`${candidate.name}-${round}`);
      },
    });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: environments() });
      while ((await handle.query<CampaignProgress>('progress')).children.length === 0) await pause();
      const child = childOf(handle);
      const { waiting, environment } = await asked(child);
      expect(waiting).toMatchObject({ what: 'environment', of: `${CHILD}-1`, names: [CHILD], round: 1 });
      expect(environment?.rounds).toMatchObject([{ round: 1, calibration: { accepted: true } }]);
      expect(await child.query<ChildProgress>('progress')).toMatchObject({
        phase: 'approval',
        calibration: '40%',
        waiting: { round: 1 },
      });
      const parent = async () => (await handle.query<CampaignProgress>('progress')).children[0]?.detail ?? '';
      while (!/^waits for approval of its environment, round 1, since /.test(await parent())) await pause();
      expect(await refused(approve(child, { capabilities: [{ name: CHILD, definition: 'd' }] }))).toMatch(
        /^capabilities: an environment waits/,
      );
      expect(await refused(approve(child, { module: artifact(`${CHILD}-1`) }))).toMatch(/^module: it is the text that/);
      expect(await refused(approve(child, { module: 'text' }))).toMatch(/^module: /);
      await reject(child, { of: `${CHILD}-1`, reason: 'the user gives the order id unasked' });
      while ((await asked(child)).waiting.round !== 2) await pause();
      expect(await refused(approve(child, { of: `${CHILD}-1` }))).toMatch(/^already decided: rejected: the user gives/);
      await approve(child);
      await handle.result();
    });
    expect(given).toEqual([
      undefined,
      {
        module: artifact(`${CHILD}-1`),
        findings: [],
        rejection: 'the user gives the order id unasked',
        attempts: artifact(`${CHILD}: calibration, round 1`),
        calibration: calibration(true),
      },
    ]);
    expect(seen.record?.capabilities).toMatchObject([
      { status: 'trained', rounds: [{ decision: { kind: 'reject' } }, { decision: { kind: 'approve' } }] },
    ]);
  });

  test('one that is rejected in the last round is not approved', async () => {
    const { activities, seen } = oneCapability();
    const campaign = named({ approval: { environments: true }, calibration: { maxRounds: 1 } });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign });
      while ((await handle.query<CampaignProgress>('progress')).children.length === 0) await pause();
      const child = childOf(handle);
      await asked(child);
      await reject(child, { reason: 'too far from the target' });
      await handle.result();
    });
    expect(seen.record?.capabilities).toMatchObject([
      { status: 'not_approved', reason: 'a person read this version and rejected it: too far from the target' },
    ]);
    expect(seen.trainings).toEqual([]);
  });

  test.each([
    [true, 'trained'],
    [false, 'not_synthesized'],
  ])('an edited text is tested (%s) and calibrated in the place of the next version', async (passed, status) => {
    const synthesize = jest.fn(async ({ round }: { round: number }) => artifact(`v${round}`));
    const { activities, seen } = oneCapability({
      synthesize,
      selfTest: async ({ module }) => ({ passed: passed || module.sha256 !== 'edited', findings: ['it ends at once'] }),
    });
    const last = named({ approval: { environments: true }, calibration: { maxRounds: 1 } });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: last });
      while ((await handle.query<CampaignProgress>('progress')).children.length === 0) await pause();
      const child = childOf(handle);
      await asked(child);
      await approve(child, { module: artifact('edited') });
      await handle.result();
    });
    expect(synthesize).toHaveBeenCalledTimes(1);
    expect(seen.record?.capabilities).toMatchObject([
      { status, rounds: [{ round: 1 }, { round: 2, module: artifact('edited') }] },
    ]);
    const calibrated = seen.rollOuts.filter(({ purpose }) => purpose === 'calibration');
    expect(calibrated).toHaveLength(passed ? 2 : 1);
    expect(seen.trainings).toHaveLength(passed ? 1 : 0);
  });

  test('when nobody answers in time, reject asks the synthesizer for nothing more', async () => {
    const { activities, seen } = oneCapability();
    const synthesize = jest.spyOn(activities, 'synthesize');
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: environments({ timeoutHours: 1, onTimeout: 'reject' }) });
      await handle.result();
    });
    expect(synthesize).toHaveBeenCalledTimes(1);
    expect(seen.record?.capabilities).toMatchObject([
      { status: 'not_approved', reason: 'nobody approved it within 1 h (approval.timeoutHours)' },
    ]);
  });

  test('when nobody answers in time, fail fails the capability alone', async () => {
    const { activities, seen } = oneCapability();
    await withWorkers(env, activities, async () => {
      await (await start(env, { campaign: environments({ timeoutHours: 1 }) })).result();
    });
    expect(seen.record?.capabilities).toMatchObject([
      { status: 'failed', reason: expect.stringMatching(/^NotApproved: the environment of tell_what/) as string },
    ]);
    expect(seen.record?.evaluation?.policies.map(({ name }) => name)).toEqual(['base', 'trace']);
  });

  test('one that is outside the bands is nobody’s question', async () => {
    const { activities, seen } = oneCapability({ calibrate: async () => calibration(false) });
    await withWorkers(env, activities, async () => (await start(env, { campaign: environments() })).result());
    expect(seen.record?.capabilities).toMatchObject([{ status: 'not_calibrated' }]);
  });
});

describe('on the server that campaigns run on', () => {
  let real: TestWorkflowEnvironment;
  beforeAll(async () => {
    real = await devServer();
  });
  afterAll(() => real?.teardown());

  test('a worker that ends while it waits is nothing to the wait; another one goes on', async () => {
    const { activities, seen } = fakeActivities();
    const campaign = capabilities();
    const handle = await withWorkers(real, activities, async () => {
      const started = await start(real, { campaign });
      await asked(started);
      return started;
    });
    // Nothing of the first worker is left: this one builds the workflow's state from its history.
    await withWorkers(real, activities, async () => {
      expect((await asked(handle)).waiting.names).toHaveLength(2);
      await approve(handle);
      await handle.result();
    });
    expect(seen.record?.capabilities).toHaveLength(2);
    // And so does one that replays the whole, the decision too.
    const history = await handle.fetchHistory();
    await expect(
      Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, handle.workflowId),
    ).resolves.toBeUndefined();
  });
});
