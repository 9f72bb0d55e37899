/** The ways to route: a new one is a folder here and a line below. */
import { linear } from './linear';
import type { RouterKind } from './router';

export const routers: readonly RouterKind[] = [linear];
