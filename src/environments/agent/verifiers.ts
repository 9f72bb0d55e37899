/** Environments of verifiers own their loop and ask a model in OpenAI's form: an agent's program plays each. */
import { join } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../../store/project-root';
import { agentKind } from './kind';
import { type AgentTask, listOf } from './tasks';

const taskCount = z.number().int().min(1).max(10_000);
const configSchema = z.record(z.string(), z.json());

/** Verifiers' own rollout, in a process of its Python. */
export const verifiers = agentKind({
  kind: 'verifiers',
  options: {
    environment: z.string().describe('Installed taskset, as for `vf-eval`.'),
    venv: z.string().describe('Python environment with verifiers.'),
    arguments: configSchema.default({}).describe('`env` config of verifiers.'),
    testArguments: configSchema.optional().describe('`arguments` of the test split.'),
    trainTasks: taskCount.min(2).default(400).describe('Tasks of the train split.'),
    testTasks: taskCount.default(200).describe('Tasks of the test split.'),
    rewards: z.tuple([z.number(), z.number()]).default([0, 1]).describe('Lowest and highest reward.'),
  },
  paths: ['venv'],
  runs: ['environment', 'venv', 'arguments', 'testArguments'],
  expand: ({ environment, venv, arguments: given, testArguments, trainTasks, testTasks, rewards }, { maxSteps }) => {
    const env = (config: z.infer<typeof configSchema>) => ({
      ...config,
      taskset: { ...(config['taskset'] as object | undefined), id: environment },
    });
    const tasks = (split: AgentTask['split'], count: number, from: number, config: z.infer<typeof configSchema>) =>
      Array.from({ length: count }, (_, n) => ({
        id: `${split}-${n}`,
        split,
        index: from + n,
        maxSteps,
        rewards,
        env: env(config),
      }));
    const all = [
      ...tasks('train', trainTasks, 0, given),
      ...tasks('test', testTasks, testArguments ? 0 : trainTasks, testArguments ?? given),
    ];
    return {
      name: environment,
      command: [join(venv, 'bin', 'python'), join(projectRoot, 'bridges', 'verifiers', 'agent.py')],
      folder: '.',
      tasks: async () => listOf(all),
    };
  },
});
