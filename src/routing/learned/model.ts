/**
 * What trainer/fit_router writes, and what each of its forms predicts. Invariant: an unknown form, or a number that is not finite, is an
 * error, never a silent choice.
 */
import { z } from 'zod';
import { fitSchema, type Fit, type FittedRouter } from '../router';
import { labelsSchema } from './labels';
import { ridgeSchema, sums } from './ridge';

const formSchema = z.discriminatedUnion('form', [ridgeSchema, labelsSchema]);
export type Model = z.output<typeof formSchema>;
type Predicting = Exclude<Model, { form: 'labels' }>;

/** The fit in a router file of trainer/fit_router. */
export function fitOf(file: unknown): Fit {
  const fit = fitSchema.parse(file);
  // One that gives everything to one option predicts nothing.
  if (fit.constant === undefined) formSchema.parse(fit.parameters);
  return fit;
}

/** A fitted router's model; throws if it is not one for its options. */
export function modelOf({ parameters, options }: FittedRouter): Model {
  const model = formSchema.parse(parameters);
  const names = model.form === 'ridge' ? model.options.map(({ name }) => name) : model.options;
  const [given, wanted] = [names, options.map(({ name }) => name)].map((list) => [...list].sort());
  if (JSON.stringify(given) !== JSON.stringify(wanted)) {
    throw new Error(`a router fitted for ${given?.join(', ')} can't choose among ${wanted?.join(', ')}; fit it again`);
  }
  return model;
}

/** Each option's predicted success. */
export function predictions(model: Predicting, text: string): Record<string, number> {
  const predicted = sums(model, text);
  for (const [name, value] of predicted) {
    if (!Number.isFinite(value)) throw new Error(`router option "${name}": the parameters do not match the words`);
  }
  return Object.fromEntries(predicted);
}
