/**
 * Routes by a linear model of each option's success, over the words of the first user message. Invariant: it routes only where that beat
 * the best single option on tasks that it was not fitted on (trainer/fit_router).
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { canonical } from '../../artifacts/hash';
import { defineKind } from '../../domain/kind';
import { agentView, type Message } from '../../domain/messages';
import type { Choice } from '../../domain/rollout';
import { runPython } from '../../policy/python';
import {
  firstUserMessage,
  type ChooseInput,
  type Fit,
  type FitInput,
  type FittedRouter,
  type RouterContext,
  type RouterKind,
} from '../router';
import { fitOf, modelOf, probabilities } from './model';

const textOf = (messages: readonly Message[]): string => firstUserMessage(agentView(messages));

export const linear: RouterKind = defineKind({
  kind: 'linear',
  version: '1',
  options: {
    /** Of the cross-validation. */
    folds: z.number().int().min(2).default(5),
  },
  open({ folds }, identity, { python }: RouterContext) {
    const models = new WeakMap<FittedRouter, ReturnType<typeof modelOf>>();

    function model(fitted: FittedRouter): ReturnType<typeof modelOf> {
      const known = models.get(fitted) ?? modelOf(fitted);
      models.set(fitted, known);
      return known;
    }

    return {
      identity,
      fit: (input) => fit({ ...input, folds, python }),

      async choose({ fitted, messages }: ChooseInput): Promise<Choice> {
        const predicted = probabilities(model(fitted), textOf(messages));
        const rate = ({ name }: FittedRouter['options'][number]): number => predicted[name]!;
        // `base` is the first: it wins ties.
        const chosen = fitted.options.reduce((best, next) => (rate(next) > rate(best) ? next : best));
        return { chosen: chosen.name, policy: chosen.policy, probabilities: predicted };
      },
    };
  },
});

async function fit({
  options,
  tasks,
  seed,
  folds,
  python,
  progress,
  signal,
}: FitInput & { folds: number; python: string }): Promise<Fit> {
  const folder = await mkdtemp(join(tmpdir(), 'router-'));
  try {
    const [from, to] = [join(folder, 'outcomes.json'), join(folder, 'router.json')];
    const outcomes = {
      options: options.map(({ name }) => name),
      tasks: tasks.map(({ id, messages, outcomes }) => ({ id, text: textOf(messages), outcomes })),
    };
    await writeFile(from, canonical(outcomes));
    await runPython({
      python,
      args: ['fit-router', '--in', from, '--out', to, '--folds', String(folds), '--seed', String(seed)],
      signal,
      onProgress: progress,
    });
    return fitOf(JSON.parse(await readFile(to, 'utf8')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
