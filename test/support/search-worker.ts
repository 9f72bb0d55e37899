/**
 * One attempt of the activity `searchPrompt` in a process that may be killed, with the real engine and store and the real GEPA:
 *   node -r ./test/support/register.cjs test/support/search-worker.ts HOME URL [KILL_AT] [TOKENS]
 * The policy does as often as its prompt says `add` what the task wants. It writes every finished conversation to HOME/evaluated; KILL_AT is
 * the conversation in whose middle the process kills itself; TOKENS its budget. It prints the result with its checkpoints.
 */
import { MockActivityEnvironment } from '@temporalio/testing';
import { appendFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRolloutActivities } from '../../src/activities';
import type { SearchPromptInput } from '../../src/activities/types';
import { openFolderStore } from '../../src/store/open-store';
import { languageModelSchema, type Budget } from '../../src/domain/endpoints';
import { putPlan } from './activity-inputs';
import { registry } from './kinds';
import { countingEnvironment } from './counting-environment';
import { scriptedPolicy, turnOf } from './scripted-policy';
import { poolOf } from './environment-pool';

export const ROLLOUTS = 40;
const TASKS = ['n-3', 'n-1', 'n-5', 'n-2', 'n-6', 'n-4', 'n-7', 'n-8'];

async function attempt(home: string, url: string, killAt: number, budget: Budget): Promise<void> {
  let conversations = 0;
  const client = scriptedPolicy(async ({ messages }) => {
    const prompt = messages.find(({ role }) => role === 'system')?.content ?? '';
    const task = messages.find(({ role }) => role === 'user')!.content;
    const turn = turnOf(messages);
    if (turn === 0 && conversations++ === killAt) {
      // Earlier scores are durable by then.
      await sleep(300);
      process.kill(process.pid, 'SIGKILL');
    }
    const adds = prompt.split(' ').filter((word) => word === 'add').length;
    if (turn < Math.min(adds, Number(task.slice('n-'.length))))
      return { role: 'assistant', content: '', toolCalls: [{ id: `call_${turn}`, name: 'add', arguments: {} }] };
    appendFileSync(join(home, 'evaluated'), `${JSON.stringify({ task, prompt })}\n`);
    return { role: 'assistant', content: 'done' };
  });
  const store = openFolderStore(join(home, 'artifacts'));
  const plan = await putPlan(store, TASKS);
  const reward = (count: number, wanted: number) => Math.min(1, count / wanted);
  const environment = countingEnvironment({ reward, maxSteps: 12 });
  const { searchPrompt } = createRolloutActivities({
    ...{ store, home, client, kinds: registry, python: resolve('.venv/bin/python') },
    environments: poolOf(async () => environment),
  });
  const input: SearchPromptInput = {
    ...{ store: await store.id(), name: 'gepa', campaign: 'searches', budget, base: 'base@1' },
    ...{ seed: 1, searchSeed: 1, rollouts: ROLLOUTS },
    environment: { kind: 'shop' },
    tasks: { kind: 'plan', plan, part: 'train' },
    search: {
      ...{ prompt: '', place: 'before', validationTasks: 3, minibatchSize: 2 },
      ...{ acceptance: 'strict_improvement' },
    },
    reflection: { field: 'arms.gepa.reflection', model: languageModelSchema.parse({ url, model: 'm' }) },
    sampling: { temperature: 1, topP: 1, maxTokens: 16 },
    ...{ maxSteps: 12, concurrency: 1, maxAttempts: 1, stallSeconds: 60 },
  };
  process.stdout.write(JSON.stringify(await new MockActivityEnvironment().run(searchPrompt, input)));
}

if (require.main === module) {
  const [home = '', url = '', killAt = '-1', tokens] = process.argv.slice(2);
  attempt(home, url, Number(killAt), tokens ? { tokens: Number(tokens) } : {}).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 1;
  });
}
