/** Fits a router with `python -m trainer fit-router`, which cross-validates it against the best single option. */
import { z } from 'zod';
import { agentView, type Message } from '../domain/messages';
import { askPython } from '../policy/python';
import { firstUserMessage, fitSchema, type Fit, type FitInput, type RouterContext } from './router';

export const textOf = (messages: readonly Message[]): string => firstUserMessage(agentView(messages));

export const foldsField = z.number().int().min(2).default(5).describe('Folds of the cross-validation.');

/** Predictions that differ by no more are equal, as in trainer/fit_router: the last digits depend on the machine. */
export const TIE = 1e-9;

/** The base model's answers for every task, for a router that is fitted on them (trainer/fit_router/outcomes.py). */
export interface LabelAnswers {
  names: string[];
  neighbours: number[];
  /** Indexed by task, number of neighbours and name; null for a name that was no candidate. */
  logprobs: (number | null)[][][];
}

interface PythonFit {
  input: FitInput;
  options: object;
  context: RouterContext;
  labels?: LabelAnswers;
}

/** Fits a router in a Python process (trainer/fit_router). Throws what `askPython` does. */
export function fitWithPython({ input, options, context, labels }: PythonFit): Promise<Fit> {
  const question = {
    ...options,
    seed: input.seed,
    options: input.options.map(({ name }) => name),
    tasks: input.tasks.map(({ id, messages, outcomes: trials }) => ({
      id,
      text: textOf(messages),
      outcomes: trials,
    })),
    ...(labels && { labels }),
  };
  return askPython({
    command: 'fit-router',
    question,
    answer: fitSchema,
    program: { python: context.python, signal: input.signal, onProgress: input.progress },
  });
}

/** Throws unless a model was fitted for the options that it is to choose among. */
export function checkOptions(fitted: readonly string[], options: readonly { name: string }[]): void {
  const wanted = options.map(({ name }) => name);
  if (JSON.stringify([...fitted].sort()) === JSON.stringify([...wanted].sort())) return;
  throw new Error(
    `a router fitted for ${fitted.join(', ')} can't choose among ${wanted.join(', ')}; fit the router again`,
  );
}
