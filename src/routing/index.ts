/** The ways to route: a new one is a folder here and a line below. */
import { learned } from './learned';
import type { RouterKind } from './router';

export const routers: readonly RouterKind[] = [learned];
