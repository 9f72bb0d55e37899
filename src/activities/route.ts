/** Fits the router on the outcome matrix of the train split, and applies it to the test tasks. */
import { Context } from '@temporalio/activity';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonical, digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import type { Message } from '../domain/messages';
import { readRollouts } from '../rollout/read';
import { route, routerSchema } from '../routing/router';
import { isSuccess } from '../domain/rollout';
import { fail, putJson, readJson, type Dependencies } from './context';
import { runPython } from './python';
import { resolveTasks, type Assignment } from './tasks';
import type { ControlActivities } from './types';

/** What trainer/fit_router reads. */
interface Outcomes {
  options: string[];
  tasks: { id: string; text: string; outcomes: Record<string, number[]> }[];
}

export function createRoute({
  store,
  environments,
  python,
}: Dependencies): Pick<ControlActivities, 'fitRouter' | 'route'> {
  return {
    async fitRouter({ outcomes, seed, folds }) {
      const inputs = outcomes.map(({ rollouts }) => rollouts);
      const key = `router/${digest({ inputs, options: outcomes.map((o) => o.option), seed, folds })}`;
      const router = (await store.find(key)) ?? (await fit());
      const { crossValidation } = routerSchema.parse(await readJson(store, router));
      return { router, helps: crossValidation.helps };

      async function fit(): Promise<ArtifactRef> {
        const folder = await mkdtemp(join(tmpdir(), 'router-'));
        try {
          const [from, to] = [join(folder, 'outcomes.json'), join(folder, 'router.json')];
          await writeFile(from, canonical(await outcomeMatrix(outcomes)));
          await runPython({
            python,
            args: ['fit-router', '--in', from, '--out', to, '--folds', String(folds), '--seed', String(seed)],
            signal: Context.current().cancellationSignal,
          });
          const value: unknown = JSON.parse(await readFile(to, 'utf8'));
          return await putJson(store, { key, producer: 'fitRouter', inputs, value });
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      }
    },

    async route({ target, router: ref, plan, seed }) {
      const router = routerSchema.parse(await readJson(store, ref));
      const environment = await environments.get(target);
      const assignment: Assignment = [];
      for (const task of await resolveTasks(store, { kind: 'plan', plan, part: 'evaluation' })) {
        const episode = await environment.reset({ id: task, seed });
        assignment.push({ task, ...route(router, firstUserMessage(episode.start.messages)) });
        await episode.close();
      }
      const counts = new Map<string, number>();
      for (const { option } of assignment) counts.set(option, (counts.get(option) ?? 0) + 1);
      const key = `assignment/${digest({ ref, plan, target, seed })}`;
      return {
        assignment: await putJson(store, { key, producer: 'route', inputs: [ref, plan], value: assignment }),
        chosen: [...counts].map(([option, tasks]) => ({ option, tasks })),
      };
    },
  };

  /** Tasks that every option has scored rollouts of, with their successes. */
  async function outcomeMatrix(outcomes: { option: string; rollouts: ArtifactRef }[]): Promise<Outcomes> {
    const tasks = new Map<string, Outcomes['tasks'][number]>();
    for (const { option, rollouts } of outcomes) {
      for await (const rollout of readRollouts({ store, ref: rollouts })) {
        if (rollout.status !== 'scored') continue;
        const task: Outcomes['tasks'][number] = tasks.get(rollout.task) ?? {
          id: rollout.task,
          text: firstUserMessage(rollout.messages),
          outcomes: {},
        };
        tasks.set(rollout.task, task);
        (task.outcomes[option] ??= []).push(isSuccess(rollout) ? 1 : 0);
      }
    }
    const options = outcomes.map((o) => o.option);
    return { options, tasks: [...tasks.values()].filter((task) => options.every((option) => task.outcomes[option])) };
  }
}

function firstUserMessage(messages: Message[]): string {
  const first = messages.find((message) => message.role === 'user');
  if (!first) throw fail('BadEnvironment', 'a conversation without a user message can not be routed');
  return first.content;
}
