/** Campaigns that end because something on the disk is damaged are started again, on a real server with a workflow of one step. */
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, DefaultLogger, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { UserError } from '../../../src/cli/errors';
import { homeAt } from '../../../src/cli/project';
import { campaignToEnd, decide } from '../../../src/cli/run/campaign';
import { changedFieldsText } from '../../../src/cli/run/changed-fields';
import { readStatus } from '../../../src/cli/watch/snapshot';
import { taskQueues } from '../../../src/domain/work';
import { renderReport } from '../../../src/report/render';
import { reportFixture } from '../../support/report-fixture';
import { connectionTo, devServer, quiet } from '../../workflows/environment';

jest.setTimeout(120_000);
const root = resolve(__dirname, '../../..');
quiet();

let env: TestWorkflowEnvironment;
let workflowBundle: WorkflowBundleWithSourceMap;
const home = homeAt(mkdtempSync(join(tmpdir(), 'started-again-')));
beforeAll(async () => {
  const workflowsPath = join(root, 'test', 'fixtures', 'started-again', 'workflows.ts');
  workflowBundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  env = await devServer();
});
afterAll(async () => {
  await env.teardown();
  rmSync(home.root, { recursive: true });
});
const temporal = () => ({ client: env.client, close: () => Promise.resolve() });

/** Runs a campaign whose step does `step`, told which start it is; the step that returns has written a report. */
async function run(
  name: string,
  step: (start: number) => string | void | Promise<string | void>,
  options: { retry?: string | true; failed?: string[] } = {},
) {
  const { failed = [], ...rest } = options;
  const notes: string[] = [];
  let starts = 0;
  const work = async () => {
    const report = (await step(++starts)) ?? renderReport({ report: reportFixture() }).json;
    mkdirSync(join(home.root, name), { recursive: true });
    writeFileSync(join(home.root, name, 'report.json'), report);
    return { failed, children: [] };
  };
  const at = { ...connectionTo(env), taskQueue: taskQueues.control('store') };
  const worker = await Worker.create({ ...at, workflowBundle, activities: { work } });
  const ended = worker.runUntil(
    campaignToEnd({
      home,
      temporal: temporal(),
      options: { home: home.root, ...rest },
      campaign: loadCampaign({ file: 'campaigns/demo.yaml', overrides: { name } }),
      ...{ store: 'store', base: 'base@0123456789ab', pool: 'pool' },
      configDigests: { evaluation: 'digest' },
      terms: 'terms',
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
  expect(readStatus({ home: home.root, name: 'healed' })?.snapshot.status).toBe('COMPLETED');
});

const matching = (text: RegExp) => expect.stringMatching(text) as string;
it.each<[string, string, Parameters<typeof run>[1], object]>([
  [
    'an artifact that is damaged every time ends the run',
    'broken',
    damaged,
    { starts: 4, ended: matching(/adapter of dates/) },
  ],
  [
    'any other failure ends the run',
    'refused',
    () => Promise.reject(ApplicationFailure.nonRetryable('no such model', 'BadInput')),
    { starts: 1, ended: matching(/no such model/) },
  ],
  [
    'a damaged report is written anew',
    'reported',
    (start) => (start === 1 ? '{"campaign":' : undefined),
    {
      ...{ starts: 2, ended: true },
    },
  ],
])('%s', async (_what, name, step, expected) => {
  expect(await run(name, step)).toMatchObject(expected);
});

it('one that has completed is started again where what failed in it is to be done again, and else not', async () => {
  const done = () => undefined;
  expect(await run('retried', done, { failed: ['tell'] })).toMatchObject({ ended: true, starts: 1 });
  expect(await run('retried', done)).toMatchObject({ ended: true, starts: 0 });
  const again = await run('retried', done, { retry: true });
  expect(again).toMatchObject({ ended: true, starts: 1 });
  expect(await run('retried', done, { retry: true })).toMatchObject({ starts: 0 });
});

describe('a name that Temporal knows', () => {
  const state = {
    status: 'COMPLETED',
    runId: 'r',
    taskQueue: 'campaign-control-s',
    isCancelling: false,
    configDigest: 'a',
    terms: 't',
  } as const;
  const stopped = { ...state, until: 'rollouts', configDigest: 'r' } as const;
  const about = {
    name: 'demo',
    store: 's',
    configDigests: { rollouts: 'r', evaluation: 'a' },
    terms: 't',
    contents: 'c',
  };
  it.each([
    ['is new', undefined, undefined, 'start'],
    ['is running', { ...state, status: 'RUNNING' }, undefined, 'attach'],
    ['has completed', { ...state, contents: 'c' }, undefined, 'show'],
    ['has completed under a version that knew no contents', state, undefined, 'show'],
    ['has failed, and its program was mended', { ...state, status: 'FAILED', contents: 'b' }, undefined, 'start'],
    ['has stopped at a stage, and more is wanted', stopped, undefined, 'start'],
    ['has stopped at the stage that is wanted', stopped, 'rollouts', 'show'],
    ['has failed', { ...state, status: 'FAILED' }, undefined, 'start'],
    ['was terminated', { ...state, status: 'TERMINATED' }, undefined, 'start'],
    ['has completed, and may spend more now', { ...state, terms: 's' }, undefined, 'start'],
    ['was refused before its base rollouts', { ...state, status: 'FAILED', configDigest: 'b' }, undefined, 'start'],
    ['is running, and may spend more later', { ...state, status: 'RUNNING', terms: 's' }, undefined, 'attach'],
  ] as const)('%s', (_what, known, until, decision) => {
    expect(decide(known, { ...about, until })).toBe(decision);
  });

  it.each([
    ['another configuration', { ...stopped, configDigest: 'q' }],
    ['another configuration', { ...state, status: 'RUNNING', configDigest: 'b' }],
    ['another configuration', { ...state, status: 'FAILED', stage: 'selection', configDigest: 'b' }],
    ['other files', { ...state, contents: 'b' }],
    ['another home', { ...state, taskQueue: 'campaign-control-other' }],
  ] as const)('of %s is refused', (_what, known) => {
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
