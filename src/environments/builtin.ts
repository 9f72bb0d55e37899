/** Environments that are part of the project and run in process: each has parameters of its own. */
import { z } from 'zod';
import type { KindSpec } from '../domain/kinds';
import type { EnvironmentKind } from './kinds';
import { shop } from './shop/shop';

const builtins = [shop];
export const builtinNames: readonly string[] = builtins.map(({ name }) => name);

const shapes = builtins.map(({ name, summary, parameters }) => ({
  name: z.literal(name).describe(summary),
  ...parameters.shape,
}));
const [first, ...others] = shapes.map((shape) => z.object(shape));
const schema = z.discriminatedUnion('name', [first!, ...others]);

const read = (spec: KindSpec) => schema.parse(spec);

export const builtin: EnvironmentKind = {
  kind: 'builtin',
  version: '1',
  options: {},
  variants: { by: 'name', shapes },
  paths: [],
  given: {},
  read,
  open(spec) {
    const { name, ...parameters } = read(spec);
    return builtins.find((one) => one.name === name)!.create(parameters);
  },
  label: (spec) => read(spec).name,
};
