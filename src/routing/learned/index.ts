/**
 * Routes by the form that does best of several: what predicts each option's success from the words of the first user message, or the base
 * model as classifier (trainer/fit_router). Invariant: it routes only where that beat the best single option on tasks that neither was
 * chosen on, by more than the same outcomes do that are given to other texts.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { canonical } from '../../artifacts/hash';
import { defineKind } from '../../domain/kinds';
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
import { askAll, chooser, completed, type Choose } from './asking';
import { fitOf, modelOf, predictions, type Model } from './model';
import { embeddingsSchema } from './retrieval';

const textOf = (messages: readonly Message[]): string => firstUserMessage(agentView(messages));

/** Predictions that differ by no more are equal, as in trainer/fit_router: the last digits depend on who computes them. */
const TIE = 1e-9;

const options = {
  folds: z.number().int().min(2).default(5).describe('Folds of the cross-validation.'),
  labels: z
    .boolean()
    .default(false)
    .describe(
      'Compares the base model as classifier too: it is asked twice for each task of the router, and once for a conversation if that form is kept.',
    ),
  embeddings: embeddingsSchema
    .optional()
    .describe('Endpoint of embeddings that finds similar tasks for it; without one, the words that tasks hold.'),
};
interface LearnedOptions {
  folds: number;
  labels: boolean;
  embeddings?: z.output<typeof embeddingsSchema> | undefined;
}

export const learned: RouterKind = defineKind({
  kind: 'learned',
  // 4: one form less is compared, so the forms in a report are others, and chance is judged among fewer.
  version: '4',
  options,
  open(given, identity, context: RouterContext) {
    const models = new WeakMap<FittedRouter, Model>();
    const choosers = new WeakMap<Model, Choose>();

    function model(fitted: FittedRouter): Model {
      const known = models.get(fitted) ?? modelOf(fitted);
      models.set(fitted, known);
      return known;
    }

    return {
      identity,
      fit: (input) => fit({ ...input, given, context }),

      async choose({ fitted, messages, signal }: ChooseInput): Promise<Choice> {
        const found = model(fitted);
        const text = textOf(messages);
        if (found.form === 'labels') {
          const choose =
            choosers.get(found) ?? chooser({ model: found, fitted, context, embeddings: given.embeddings });
          choosers.set(found, choose);
          return choose(text, signal);
        }
        const predicted = predictions(found, text);
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
  given,
  context,
  ...input
}: FitInput & { given: LearnedOptions; context: RouterContext }): Promise<Fit> {
  const { seed, progress, signal } = input;
  const tasks = input.tasks.map(({ id, messages, outcomes }) => ({ id, text: textOf(messages), outcomes }));
  const asked = given.labels ? await askAll({ ...input, tasks, context, embeddings: given.embeddings }) : undefined;
  const folder = await mkdtemp(join(tmpdir(), 'router-'));
  try {
    const [from, to] = [join(folder, 'outcomes.json'), join(folder, 'router.json')];
    const outcomes = {
      options: input.options.map(({ name }) => name),
      tasks,
      ...(asked && { asked: asked.heard }),
    };
    await writeFile(from, canonical(outcomes));
    await runPython({
      python: context.python,
      args: ['fit-router', '--in', from, '--out', to, '--folds', String(given.folds), '--seed', String(seed)],
      signal,
      onProgress: progress,
    });
    const file: unknown = JSON.parse(await readFile(to, 'utf8'));
    return fitOf(asked ? completed(file, asked) : file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
