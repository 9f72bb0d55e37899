/** Asks the base model for the form `labels`: of all train tasks when the router is fitted, of a conversation when it chooses. */
import { z } from 'zod';
import { createLimit } from '../../domain/concurrency';
import { isLearned, policyNames } from '../../domain/policies';
import type { Choice, FixedPolicy } from '../../domain/rollout';
import type { FitInput, FittedRouter, RouterContext } from '../router';
import { choice, hear, MOST_NAMES, neededOf, type Example, type Heard, type LabelsModel } from './labels';
import { embed, similarVectors, similarWords, type Endpoint, type Similar } from './retrieval';

/** Similar train tasks that name the candidates: how many is chosen in the fit. */
const NEIGHBOURS = [4, 16];
/** Questions at once. */
const AT_ONCE = 32;

export interface Asked {
  /** As trainer/fit_router reads it. */
  heard: { names: string[]; neighbours: number[]; logprobs: Heard[][] };
  /** What a router file of the form `labels` holds besides. */
  shown: Pick<LabelsModel, 'definitions' | 'examples' | 'vectors'>;
}

/** Each task once with every number of neighbours, which are other tasks. */
export async function askAll({
  options,
  tasks,
  definitions = {},
  context,
  embeddings,
  progress,
  signal,
}: Pick<FitInput, 'options' | 'definitions' | 'progress' | 'signal'> & {
  tasks: { text: string; outcomes: Record<string, number[]> }[];
  context: RouterContext;
  embeddings: Endpoint | undefined;
}): Promise<Asked> {
  const all = options.map(({ name }) => name);
  const names = all.filter((name) => !name.includes('+') && !isLearned(name));
  if (names.length > MOST_NAMES)
    throw new Error(`router.labels: ${names.length} options and ${MOST_NAMES} labels; set it to false`);
  const examples = tasks.flatMap(({ text, outcomes }): Example[] => {
    const needed = neededOf(all, outcomes);
    return needed?.every((name) => names.includes(name)) ? [{ text, needed }] : [];
  });
  const texts = [...new Set(tasks.map(({ text }) => text))];
  const vectors = embeddings && new Map((await embed(embeddings, texts, signal)).map((one, n) => [texts[n]!, one]));
  const known = vectors && examples.map(({ text }) => vectors.get(text)!);
  const similar: Similar = known
    ? similarVectors(known, async (text) => vectors.get(text)!)
    : similarWords(examples.map(({ text }) => text));
  const likeliest = asker(context, basePolicy(options), signal);
  const limit = createLimit(AT_ONCE);
  let done = 0;
  const logprobs = await Promise.all(
    tasks.map(({ text }) =>
      Promise.all(
        NEIGHBOURS.map((neighbours) =>
          limit(async () => {
            signal.throwIfAborted();
            const heard = await hear({ text, names, definitions, examples, neighbours, similar, likeliest });
            progress(++done, tasks.length * NEIGHBOURS.length);
            return heard;
          }),
        ),
      ),
    ),
  );
  return {
    heard: { names, neighbours: NEIGHBOURS, logprobs },
    shown: { definitions, examples, ...(known && { vectors: known }) },
  };
}

const fileSchema = z.looseObject({ parameters: z.looseObject({ form: z.string() }) });

/** The router file with what only the asker knows, where its form is `labels`. */
export function completed(file: unknown, { shown }: Asked): unknown {
  const { parameters, ...rest } = fileSchema.parse(file);
  return { ...rest, parameters: parameters.form === 'labels' ? { ...parameters, ...shown } : parameters };
}

export type Choose = (text: string, signal: AbortSignal) => Promise<Choice>;

export function chooser({
  model,
  fitted,
  context,
  embeddings,
}: {
  model: LabelsModel;
  fitted: FittedRouter;
  context: RouterContext;
  embeddings: Endpoint | undefined;
}): Choose {
  const { names, definitions, examples, vectors, neighbours } = model;
  if ((embeddings === undefined) !== (vectors === undefined))
    throw new Error('the router was fitted with other embeddings; fit it again');
  const words = similarWords(examples.map(({ text }) => text));
  return async (text, signal) => {
    const similar =
      embeddings && vectors
        ? similarVectors(vectors, async (one) => (await embed(embeddings, [one], signal))[0]!)
        : words;
    const likeliest = asker(context, basePolicy(fitted.options), signal);
    const heard = await hear({ text, names, definitions, examples, neighbours, similar, likeliest });
    const { option, probabilities } = choice(model, heard);
    return { chosen: option, policy: fitted.options.find(({ name }) => name === option)!.policy, probabilities };
  };
}

function basePolicy(options: FittedRouter['options']): FixedPolicy {
  const base = options.find(({ name }) => name === policyNames.base);
  if (!base) throw new Error(`options: "${policyNames.base}" is missing; the base model is always one`);
  return base.policy;
}

const asker =
  ({ client }: RouterContext, policy: FixedPolicy, signal: AbortSignal) =>
  (messages: Parameters<typeof client.likeliest>[0]['messages']) =>
    client.likeliest({ policy, messages, signal });
