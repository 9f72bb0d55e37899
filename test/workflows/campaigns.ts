/** For a test file: one server, and workers on which all its campaigns run. What an activity does is looked up by the campaign that asks. */
import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { Campaign } from '../../src/domain/campaign';
import type { CampaignRecord } from '../../src/domain/results';
import type { campaignRun } from '../../src/workflows';
import type { CampaignInput, CampaignProgress, CampaignResult } from '../../src/workflows/messages';
import { quiet, start, withWorkers } from './environment';
import { type Activities, type ActivityName, config, fakeActivities, type Seen } from './fake-activities';

/** What replaces fakes; as a function it is given those that it replaces. */
type Replaced = Partial<Activities> | ((fakes: Activities) => Partial<Activities>);
type Asked<Name extends ActivityName> = Parameters<Activities[Name]>[0];

export interface Begun {
  campaign: Campaign;
  handle: WorkflowHandle<typeof campaignRun>;
  /** Of a capability, or of an arm. */
  child: (name: string, kind?: 'capability' | 'arm') => WorkflowHandle;
  activities: Activities;
  seen: Seen;
  /** What an activity was asked for, in order. */
  asked: <Name extends ActivityName>(name: Name) => Asked<Name>[];
  progress: () => Promise<CampaignProgress>;
  /** The same campaign once more. */
  again: () => Promise<CampaignResult>;
}
export interface Played extends Begun {
  result: CampaignResult;
  record: CampaignRecord;
}

/** `heartbeatSeconds` may be less than a file may say. */
type Begin<Result> = (
  fields?: { heartbeatSeconds?: number; [field: string]: unknown },
  replaced?: Replaced,
  input?: Omit<CampaignInput, 'campaign'>,
) => Promise<Result>;
interface Campaigns {
  env: () => TestWorkflowEnvironment;
  /** Starts a campaign; without arms, and with two labeling passes, where `fields` says nothing of them. */
  begin: Begin<Begun>;
  /** And waits for its end. */
  play: Begin<Played>;
  /** And waits until it has failed: why, innermost. */
  fail: Begin<Begun & { reason: unknown }>;
}

/** `prefix`: of its campaigns' names. */
export function campaignsOn(server: () => Promise<TestWorkflowEnvironment>, prefix = 'test'): Campaigns {
  quiet();
  let env: TestWorkflowEnvironment;
  let end = (): void => undefined;
  let workers: Promise<void>;
  let count = 0;
  const all = new Map<string, { activities: Activities; calls: Map<string, unknown[]> }>();
  const dispatched = Object.keys(fakeActivities().activities).map((name) => [
    name,
    async (input: unknown): Promise<unknown> => {
      const [campaign = ''] = Context.current().info.workflowExecution!.workflowId.split('/');
      const { activities, calls } = all.get(campaign)!;
      calls.set(name, [...(calls.get(name) ?? []), input]);
      return (activities[name as ActivityName] as (asked: unknown) => Promise<unknown>)(input);
    },
  ]);
  beforeAll(async () => {
    env = await server();
    await new Promise<void>((ready, failed) => {
      const body = () => new Promise<void>((done) => ((end = done), ready()));
      workers = withWorkers(env, Object.fromEntries(dispatched) as Activities, body);
      workers.catch(failed);
    });
  });
  afterAll(async () => {
    end();
    await workers;
    await env?.teardown();
  });

  const begin: Campaigns['begin'] = async ({ heartbeatSeconds, ...fields } = {}, replaced = {}, input = {}) => {
    const { activities, seen } = fakeActivities();
    Object.assign(activities, typeof replaced === 'function' ? replaced({ ...activities }) : replaced);
    const defaults = { name: `${prefix}-${count++}`, arms: [], selection: { passes: 2, votes: 2 } };
    const campaign = config({ ...defaults, ...fields });
    if (heartbeatSeconds !== undefined) campaign.workers = { ...campaign.workers, heartbeatSeconds };
    const calls = new Map<string, unknown[]>();
    all.set(campaign.name, { activities, calls });
    const started = () => start(env, { ...input, campaign });
    const handle = await started();
    return {
      ...{ campaign, handle, activities, seen },
      child: (name, kind = 'capability') => env.client.workflow.getHandle(`${campaign.name}/${kind}/${name}`),
      asked: <Name extends ActivityName>(name: Name) => (calls.get(name) ?? []) as Asked<Name>[],
      progress: () => handle.query<CampaignProgress>('progress'),
      again: async () => (await started()).result(),
    };
  };
  return {
    env: () => env,
    begin,
    play: async (...o) => {
      const begun = await begin(...o);
      const result = await begun.handle.result();
      return { ...begun, result, record: begun.seen.record! };
    },
    fail: async (...o) => {
      const begun = await begin(...o);
      return { ...begun, reason: await failureOf(begun.handle.result()) };
    },
  };
}

/** Why it failed, innermost. */
export async function failureOf(result: Promise<unknown>): Promise<unknown> {
  let cause = await result.then(
    () => new Error('it has not failed'),
    (error: unknown) => error,
  );
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return cause;
}

/** Something that steps wait for. */
export interface Latch {
  opened: Promise<void>;
  open: () => void;
}
export function latch(): Latch {
  let open = (): void => undefined;
  return { opened: new Promise<void>((done) => (open = done)), open: () => open() };
}

/** The first answer that is one, of a question that is asked again and again. */
export async function until<T>(look: () => Promise<T | undefined | null | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((next) => setTimeout(next, 100));
  }
}
