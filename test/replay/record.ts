/**
 * Records the histories that replay.test.ts replays: `make record-histories`, after a deliberate change of the workflows. Each stands in the file of
 * its workflow's id.
 */
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, Context, sleep } from '@temporalio/activity';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Answer, Decision } from '../../src/domain/approval';
import { languageModelSchema } from '../../src/domain/endpoints';
import type { FailureType } from '../../src/domain/failures';
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
  for (;;) {
    const asked = await handle.query<{ waiting: { of: string } } | null>('approval').catch(() => null);
    if (asked) return asked.waiting.of;
    await new Promise((next) => setTimeout(next, 100));
  }
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
    // An edited list, then an environment that is sent back, then one as a person edited it.
    drive: async (campaign, child) => {
      await decide(campaign, { kind: 'approve', capabilities: [{ name: CHILD, definition: 'says it' }] });
      await decide(child, { kind: 'reject', reason: 'too easy' });
      await decide(child, { kind: 'approve', module: artifact('edited') });
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
          ...{ kind: 'gepa', prompt: '', place: 'before', validationTasks: 1, minibatchSize: 1, merges: 0 },
          ...{ candidateSelection: 'pareto', acceptance: 'strict_improvement' },
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

const folder = join(__dirname, 'histories');
/** A stack names folders of the machine. */
const withoutPaths = (key: string, value: unknown): unknown => (key === 'stackTrace' ? '' : value);

async function main(): Promise<void> {
  quiet();
  const env = await devServer();
  try {
    await rm(folder, { recursive: true, force: true });
    for (const [name, { keep, fields, replaced, drive }] of Object.entries(recordings)) {
      const campaign = config({ name, arms: [], selection: { passes: 2, votes: 2 }, ...fields });
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
          await writeFile(
            file,
            `{"events":[\n${events.map((event) => JSON.stringify(event, withoutPaths)).join(',\n')}\n]}\n`,
          );
        }
      });
    }
  } finally {
    await env.teardown();
  }
}

void main();
