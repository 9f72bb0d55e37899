/** Environments that are part of the project and run in process. */
import { z } from 'zod';
import type { Environment } from '../domain/environment';
import { defineKind } from '../domain/kind';
import type { EnvironmentKind } from './kinds';
import { createShop } from './shop';
import { shopParameters, type ShopParameters } from './shop/parameters';

const makers = { shop: createShop } satisfies Record<string, (parameters: ShopParameters) => Environment>;

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
