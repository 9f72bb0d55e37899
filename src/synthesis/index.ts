/** The synthesizers that a campaign file can pick. */
import { given } from './given';
import { llm } from './llm/llm';
import type { SynthesizerKind } from './synthesizer';
import { targetTasks } from './target-tasks';

export const synthesizers: readonly SynthesizerKind[] = [given, llm, targetTasks];
