/** Environments that others wrote, by the clients of their formats: Python modules of the project that speak the environment protocol (docs/targets.md). */
import { z } from 'zod';
import { OutsideFailure } from '../domain/failures';
import { bridge } from './benchmarks';
import type { EnvironmentKind } from './kinds';
import { processOptions, programKind } from './process';

const python = { environment: '.venv-openenv', command: 'make bridges-openenv' };
/** Of the silence after which the bridge is killed: a session that hangs breaks its own rollout first. */
const PATIENCE = 0.8;

export const openenv: EnvironmentKind = {
  ...programKind({
    kind: 'openenv',
    options: {
      url: z.string().optional().describe("A running server of OpenEnv's, such as http://127.0.0.1:8000."),
      command: z
        .array(z.string())
        .min(1)
        .optional()
        .describe('In place of `url`: program and arguments that start one; `{port}` in them is a free port.'),
      cwd: z.string().default('.').describe('Working directory of the command, relative to the campaign file.'),
      prompt: z.string().optional().describe("System message; the environment's own description without it."),
      words: z
        .string()
        .optional()
        .describe('Tool that is given what the agent says without a call; without it that ends the episode.'),
      reset: z
        .record(z.string(), z.unknown())
        .default({})
        .describe('Further arguments of `reset`, the same for every task.'),
      reward: z.enum(['last', 'sum']).default('last').describe("Which of an episode's rewards is the reward."),
      rewardRange: z
        .tuple([z.number(), z.number()])
        .refine(([low, high]) => low < high, 'the first must be below the second')
        .default([0, 1])
        .describe('Rewards that count as 0 and as 1; what lies outside counts as the nearer one.'),
      maxSteps: z.number().int().positive().default(20).describe("The agent's messages, after which an episode ends."),
      trainTasks: z.number().int().positive().default(400).describe('Seeds, of an environment that lists no tasks.'),
      testTasks: z.number().int().positive().default(200).describe('The same of `test`.'),
      processes: processOptions.processes,
      silenceSeconds: processOptions.silenceSeconds,
      passEnv: processOptions.passEnv,
    },
    paths: ['cwd'],
    runs: ['command', 'cwd', 'url', 'reset'],
    program(options) {
      if ((options.url === undefined) === (options.command === undefined))
        throw new OutsideFailure('BadInput', 'target: kind openenv takes one of url and command; name it');
      const timeout = options.silenceSeconds * PATIENCE;
      return bridge(python, 'bridges.openenv', [JSON.stringify({ ...options, timeout })]);
    },
  }),
  python,
  checkArguments: { usage: 'URL', example: 'http://127.0.0.1:8000', options: ([url]) => ({ url }) },
};
