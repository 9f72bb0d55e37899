/**
 * Routes by what predicts each option's success best from the words of the first user message, of several forms (trainer/fit_router).
 * Invariant: it routes only where that beat the best single option on tasks that neither was chosen on.
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
import { fitOf, modelOf, predictions, type Model } from './model';

const textOf = (messages: readonly Message[]): string => firstUserMessage(agentView(messages));

/** Predictions that differ by no more are equal, as in trainer/fit_router: the last digits depend on who computes them. */
const TIE = 1e-9;

export const learned: RouterKind = defineKind({
  kind: 'learned',
  version: '1',
  options: {
    /** Of the cross-validation. */
    folds: z.number().int().min(2).default(5),
  },
  open({ folds }, identity, { python }: RouterContext) {
    const models = new WeakMap<FittedRouter, Model>();

    function model(fitted: FittedRouter): Model {
      const known = models.get(fitted) ?? modelOf(fitted);
      models.set(fitted, known);
      return known;
    }

    return {
      identity,
      fit: (input) => fit({ ...input, folds, python }),

      async choose({ fitted, messages }: ChooseInput): Promise<Choice> {
        const predicted = predictions(model(fitted), textOf(messages));
        const best = Math.max(...Object.values(predicted));
        // `base` is the first and sums are last: on a tie fewer adapters win.
        const chosen = fitted.options.find(({ name }) => predicted[name]! >= best - TIE)!;
        const probabilities = Object.fromEntries(
          Object.entries(predicted).map(([name, value]) => [name, Math.min(1, Math.max(0, value))]),
        );
        return { chosen: chosen.name, policy: chosen.policy, probabilities };
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
