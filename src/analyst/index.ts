/** The analysts that a campaign file may pick from: a new one is a line here. */
import type { AnalystKind } from './analyst';
import { given } from './given';
import { llm } from './llm/llm';

export const analysts: readonly AnalystKind[] = [given, llm];
