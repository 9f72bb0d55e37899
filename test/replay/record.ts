/**
 * Records the histories that replay.test.ts replays: `make record-histories`, after a deliberate change of the workflows' commands. Each recording is a
 * new folder `histories/VERSION`, and each history is the file of its workflow's id there. Earlier versions stay as they are.
 */
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, Context, sleep } from '@temporalio/activity';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Answer, Decision } from '../../src/domain/approval';
import { languageModelSchema } from '../../src/domain/endpoints';
import type { FailureType } from '../../src/domain/failures';
import { until } from '../workflows/campaigns';
import { devServer, quiet, start, withWorkers } from '../workflows/environment';
import { artifact, calibration, config, fakeActivities, summary, type Activities } from '../workflows/fake-activities';

interface Recording {
  /** Of the workflows that are recorded: what follows the campaign's own id; '' is the campaign. */
  keep: string[];
  fields?: object;
  replaced?: (own: Activities) => Partial<Activities>;
  /** What people do meanwhile. */
  drive?: (campaign: WorkflowHandle, child: WorkflowHandle) => Promise<unknown>;
}

const CHILD = 'tell_what_is_asked';
const OWN = `/capability/${CHILD}`;
const one = async () => ({
  ref: artifact('selection'),
  selected: [{ candidate: { name: CHILD, definition: 'x', examples: [] }, votes: 2 }],
});
const failed = (type: FailureType) => ApplicationFailure.create({ type, message: 'no more', nonRetryable: true });

/** Until something waits for approval; what it is. */
async function waiting(handle: WorkflowHandle): Promise<string> {
  const asked = () => handle.query<{ waiting: { of: string } } | null>('approval').catch(() => null);
  return (await until(asked)).waiting.of;
}
const decide = async (handle: WorkflowHandle, answer: Answer) =>
  handle.executeUpdate<Decision, [Answer]>('decide', { args: [{ ...answer, of: await waiting(handle) }] });

let calibrations = 0;
let begun = false;
const recordings: Record<string, Recording> = {
  recorded: {
    keep: ['', OWN, '/arm/grpo_target'],
    fields: { selection: { passes: 3, votes: 2 }, arms: [{ kind: 'grpo_target' }] },
    replaced: () => ({ calibrate: async () => calibration(++calibrations > 2) }),
  },
  failure: {
    keep: ['', OWN],
    replaced: () => ({ select: one, train: () => Promise.reject(failed('BadInput')) }),
  },
  approved: {
    keep: ['', OWN],
    fields: { approval: { capabilities: true, environments: true } },
    replaced: () => ({ select: one }),
    // The selection, then an environment that is sent back, then its next version.
    drive: async (campaign, child) => {
      await decide(campaign, { kind: 'approve' });
      await decide(child, { kind: 'reject', reason: 'too easy' });
      await decide(child, { kind: 'approve' });
    },
  },
  rejected: {
    keep: [''],
    fields: { approval: { capabilities: true } },
    drive: (campaign) => decide(campaign, { kind: 'reject', reason: 'no skills' }),
  },
  cancelled: {
    keep: ['', OWN],
    replaced: () => ({
      select: one,
      train: async () => {
        begun = true;
        for (;;) {
          Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
          await sleep(50);
        }
      },
    }),
    drive: async (campaign) => {
      while (!begun) await new Promise((next) => setTimeout(next, 100));
      await campaign.cancel();
      await campaign.result().catch(() => undefined);
    },
  },
  budget: {
    keep: [''],
    replaced: () => ({
      label: ({ pass }) => (pass > 1 ? Promise.reject(failed('BudgetSpent')) : Promise.resolve(artifact(`l-${pass}`))),
      synthesize: () => Promise.reject(failed('BudgetSpent')),
    }),
    fields: { selection: { passes: 3, votes: 2 } },
  },
  gepa: {
    keep: ['/arm/gepa'],
    replaced: () => ({ select: one }),
    fields: {
      arms: [
        {
          ...{ kind: 'gepa', prompt: '', place: 'before', validationTasks: 1, minibatchSize: 1 },
          ...{ acceptance: 'strict_improvement' },
          reflection: languageModelSchema.parse({ url: 'http://127.0.0.1:2/v1', model: 'm' }),
        },
      ],
    },
  },
  sums: {
    keep: [''],
    // The more an option adds up, the better it is.
    replaced: () => ({
      rollOut: async (input) =>
        summary(input, 'adapters' in input.policy ? 0.1 * (1 + input.policy.adapters.length) : 0.5),
    }),
  },
  'no-gains': {
    keep: [''],
    replaced: () => ({
      findGains: async () => ({ gaining: [] }),
      fitRouter: () => Promise.reject(failed('AnswerInvalid')),
    }),
  },
};

const histories = join(__dirname, 'histories');

/** Fields that replay does not read. Most of them name the machine. */
const UNUSED = ['identity', 'memo', 'header', 'requestId', 'stackTrace', 'taskId', 'userMetadata', 'workerVersion'];
/** The same among the attributes of an event. */
const UNUSED_ATTRIBUTES = ['input', 'taskQueue', 'historySizeBytes', 'retryPolicy'];

/** Removes the unused fields of an event. The first one, the start of the workflow, is read whole. */
function reduced(event: object, index: number): object {
  const fields = JSON.parse(
    JSON.stringify(event, (key, value) => (UNUSED.includes(key) ? undefined : value)),
  ) as object;
  if (index > 0)
    for (const [name, attributes] of Object.entries(fields))
      if (name.endsWith('EventAttributes')) for (const unused of UNUSED_ATTRIBUTES) delete attributes[unused];
  return fields;
}

async function main(): Promise<void> {
  quiet();
  const env = await devServer();
  try {
    const versions = await readdir(histories);
    const folder = join(histories, String(Math.max(0, ...versions.map(Number)) + 1));
    for (const [name, { keep, fields, replaced, drive }] of Object.entries(recordings)) {
      const campaign = config({
        name,
        plugins: ['examples/shop'],
        arms: [],
        selection: { passes: 2, votes: 2 },
        ...fields,
      });
      const { activities } = fakeActivities();
      Object.assign(activities, replaced?.({ ...activities }));
      await withWorkers(env, activities, async () => {
        const handle = await start(env, { campaign });
        await drive?.(handle, env.client.workflow.getHandle(`${name}${OWN}`));
        if (name !== 'cancelled') await handle.result();
        console.log(name);
        for (const suffix of keep) {
          const id = `${name}${suffix}`;
          const { events } = JSON.parse(historyToJSON(await env.client.workflow.getHandle(id).fetchHistory())) as {
            events: object[];
          };
          const file = join(folder, `${id}.json`);
          await mkdir(dirname(file), { recursive: true });
          const lines = events.map((event, n) => JSON.stringify(reduced(event, n)));
          await writeFile(file, `{"events":[\n${lines.join(',\n')}\n]}\n`);
        }
      });
    }
  } finally {
    await env.teardown();
  }
}

void main();
