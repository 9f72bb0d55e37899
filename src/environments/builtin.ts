/** Environments that are part of the project and run in process. Invariant: a parameter that one of them has not is refused, not passed over. */
import { z } from 'zod';
import type { Environment } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import { defineKind } from '../domain/kinds';
import { createInstructions } from './instructions';
import type { EnvironmentKind } from './kinds';
import { createShop } from './shop';
import { completeParameters, shopParameters, type ShopParameters } from './shop/parameters';

const makers = {
  shop: createShop,
  instructions: ({ requests, several, ...counts }) => {
    requireDefaults('instructions', { requests, several });
    return createInstructions(counts);
  },
} satisfies Record<string, (parameters: ShopParameters) => Environment>;

function requireDefaults(name: string, given: Partial<ShopParameters>): void {
  const defaults = completeParameters();
  for (const [field, value] of Object.entries(given))
    if (value !== defaults[field as keyof ShopParameters])
      throw new OutsideFailure(
        'BadInput',
        `target.${field} is ${value}, and ${name} has no such parameter; leave it out`,
      );
}

export const builtinNames = Object.keys(makers) as (keyof typeof makers)[];

export const builtin: EnvironmentKind = {
  ...defineKind({
    kind: 'builtin',
    version: '1',
    options: { name: z.enum(builtinNames), ...shopParameters },
    open: ({ name, ...parameters }) => makers[name](parameters),
  }),
  label: ({ name }) => String(name),
};
