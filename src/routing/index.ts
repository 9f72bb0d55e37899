/** The ways to route: a new one is a file here and a line below. */
import { labelTokens } from './label-tokens';
import { learned } from './learned';
import type { RouterKind } from './router';

export const routers: readonly RouterKind[] = [learned, labelTokens];
