/** The plug-in of the demo: a shop as target, an analyst by rules and generators of environments (docs/extending.md). */
import { defineKind, type EnvironmentKind, type Plugin } from 'trace-campaign/plugin';
import { generators } from './generators';
import { rules } from './rules/rules';
import { createShop } from './target/shop';

export const name = 'shop';
export const version = '1';

const target: EnvironmentKind = defineKind({ kind: 'shop', version: '1', options: {}, open: () => createShop() });

export const targets: Plugin['targets'] = [target];
export const analysts: Plugin['analysts'] = [rules];
export const synthesizers: Plugin['synthesizers'] = [generators];
