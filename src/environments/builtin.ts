/** Environments that are part of the project and run in process: each has parameters of its own. */
import { z } from 'zod';
import { createInstructions, instructionsParameters } from './instructions/instructions';
import type { KindSpec } from '../domain/kinds';
import type { EnvironmentKind } from './kinds';
import { createShop } from './shop/shop';
import { shopParameters } from './shop/tasks';

const shop = z.object({ name: z.literal('shop').describe('A shop with orders and accounts.'), ...shopParameters });
const instructions = z.object({
  name: z.literal('instructions').describe('Short texts that must follow instructions.'),
  ...instructionsParameters,
});
const schema = z.discriminatedUnion('name', [shop, instructions]);

export const builtinNames: readonly string[] = schema.options.map(({ shape }) => shape.name.value);

const read = (spec: KindSpec) => schema.parse(spec);

export const builtin: EnvironmentKind = {
  kind: 'builtin',
  version: '1',
  options: {},
  variants: { by: 'name', shapes: [shop.shape, instructions.shape] },
  paths: [],
  read,
  open(spec) {
    const { name, ...parameters } = read(spec);
    return name === 'shop' ? createShop(parameters) : createInstructions(parameters);
  },
  label: (spec) => read(spec).name,
};
