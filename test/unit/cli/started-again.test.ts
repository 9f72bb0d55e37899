/** Campaigns that end because something on the disk is damaged are started again, on a real server with a workflow of one step. */
import { ApplicationFailure } from '@temporalio/common';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { UserError } from '../../../src/cli/errors';
import { homeAt } from '../../../src/cli/project';
import { campaignToEnd, decide } from '../../../src/cli/run/campaign';
import { changedFieldsText } from '../../../src/cli/run/changed-fields';
import { readStatus } from '../../../src/cli/watch/snapshot';
import { taskQueues } from '../../../src/domain/work';
import { renderReport } from '../../../src/report/render';
import { reportFixture } from '../../support/report-fixture';
import { temporaryFolder } from '../../support/temporary-folder';
import { bundled, connectionTo, serverForTests } from '../../workflows/environment';

const env = serverForTests();
let workflowBundle: WorkflowBundleWithSourceMap;
const home = homeAt(temporaryFolder());
beforeAll(async () => void (workflowBundle = await bundled([], 'test/fixtures/started-again/workflows.ts')));
const temporal = () => ({ client: env().client, close: () => Promise.resolve() });

/** Runs a campaign whose step does `step`, told which start it is; the step that returns has written a report. */
async function run(
  name: string,
  step: (start: number) => string | void | Promise<string | void>,
  { failed = [], retry = false }: { failed?: string[]; retry?: boolean } = {},
) {
  const notes: string[] = [];
  let starts = 0;
  const work = async () => {
    const report = (await step(++starts)) ?? renderReport({ report: reportFixture() }).json;
    mkdirSync(join(home.root, name), { recursive: true });
    writeFileSync(join(home.root, name, 'report.json'), report);
    return { failed, children: [] };
  };
  const at = { ...connectionTo(env()), taskQueue: taskQueues.control('store') };
  const campaign = loadCampaign({ file: 'campaigns/demo.yaml', overrides: { name } });
  const worker = await Worker.create({ ...at, workflowBundle, activities: { work } });
  const ended = worker.runUntil(
    campaignToEnd({
      home,
      temporal: temporal(),
      options: { home: home.root, retry },
      ...{ campaign, name, sent: () => Promise.resolve(campaign) },
      ...{ store: 'store', base: 'base@0123456789ab', pool: 'pool', configDigest: 'digest', terms: 'terms' },
      output: { note: (_stage, text) => void notes.push(text), show: () => undefined },
      diskIsFull: () => false,
      signal: new AbortController().signal,
      startWorkers: () => Promise.resolve(),
    }),
  );
  return { ended: await ended.catch((error: Error) => error.message), starts, notes };
}

const damaged = () => {
  throw ApplicationFailure.nonRetryable('adapter of dates (objects/ab) is damaged', 'ArtifactDamaged');
};

it('a damaged artifact is made anew by another start, which names it', async () => {
  const { ended, starts, notes } = await run('healed', (start) => (start < 3 ? damaged() : undefined));
  expect({ ended, starts }).toEqual({ ended: true, starts: 3 });
  expect(notes.filter((note) => note.includes('adapter of dates'))).toHaveLength(2);
  // What the last look saw is on the disk.
  expect(readStatus({ home: home.root, name: 'healed' })?.status).toBe('COMPLETED');
});

const refused = () => Promise.reject(ApplicationFailure.nonRetryable('no such model', 'BadInput'));
it.each<[what: string, step: Parameters<typeof run>[1], starts: number, ended: unknown]>([
  ['an artifact that is damaged every time', damaged, 4, expect.stringContaining('adapter of dates')],
  ['any other failure', refused, 1, expect.stringContaining('no such model')],
  ['a damaged report that is written again', (start) => (start === 1 ? '{"campaign":' : undefined), 2, true],
])('%s ends the run', async (what, step, starts, ended) => {
  expect(await run(what.replaceAll(' ', '-'), step)).toMatchObject({ starts, ended });
});

it('--retry starts a complete campaign again while something in it has failed', async () => {
  const fine = () => undefined;
  expect(await run('retried', fine, { failed: ['ask'] })).toMatchObject({ starts: 1 });
  expect(await run('retried', fine, { retry: true })).toMatchObject({ starts: 1, ended: true });
  expect(await run('retried', fine, { retry: true })).toMatchObject({ starts: 0, ended: true });
});

describe('a name that Temporal knows', () => {
  const memo = { runId: 'r', taskQueue: 'campaign-control-s', isCancelling: false, configDigest: 'a', terms: 't' };
  const [state, failed, running] = (['COMPLETED', 'FAILED', 'RUNNING'] as const).map((status) => ({ ...memo, status }));
  const stopped = { ...state!, until: 'rollouts' } as const;
  const other = { configDigest: 'b' };
  const about = { name: 'demo', store: 's', configDigest: 'a', terms: 't', contents: 'c' };
  it.each<[what: string, known: Parameters<typeof decide>[0], until: 'rollouts' | undefined, decision: string]>([
    ['is new', undefined, undefined, 'start'],
    ['is running', running, undefined, 'attach'],
    ['is running, and may spend more later', { ...running!, terms: 's' }, undefined, 'attach'],
    ['is running with another configuration', { ...running!, ...other }, undefined, 'refuse'],
    ['has completed', { ...state!, contents: 'c' }, undefined, 'show'],
    ['has completed, and may spend more now', { ...state!, terms: 's' }, undefined, 'start'],
    ['has completed with another configuration', { ...state!, ...other }, undefined, 'refuse'],
    ['has stopped at a stage, and more is wanted', stopped, undefined, 'start'],
    ['has stopped at the stage that is wanted', stopped, 'rollouts', 'show'],
    ['has stopped at a stage of another configuration', { ...stopped, ...other }, 'rollouts', 'start'],
    ['has failed, and its program was corrected', { ...failed!, contents: 'b' }, undefined, 'start'],
    ['has failed under another configuration', { ...failed!, ...other }, undefined, 'start'],
  ])('%s', (_what, known, until, decision) => {
    expect(decide(known, { ...about, until })).toBe(decision);
  });

  it.each([
    ['other files', { ...state!, contents: 'b' }],
    ['another home', { ...state!, taskQueue: 'campaign-control-other' }],
  ])('of %s is refused', (_what, known) => {
    expect(() => decide(known, about)).toThrow(UserError);
  });
});

it('fields that have changed are named with both values', () => {
  const before = loadCampaign({ file: 'campaigns/demo.yaml', overrides: {} });
  const now = { ...before, seed: 7, training: { ...before.training, steps: 99 } };
  expect(changedFieldsText(before, before)).toBe('');
  const text = changedFieldsText(before, now);
  expect(text).toContain(`seed is 7, was ${before.seed}`);
  expect(text).toContain(`training.steps is 99, was ${before.training.steps}`);
});
