/**
 * The composite: one more candidate, of all selected capabilities, trained on their environments mixed. Invariants: pure functions; the steps
 * of all trainings do not change with it.
 */
import { z } from 'zod';
import { candidateSchema, type Candidate, type Lacking, type Part } from './capability';

export const COMPOSITE = 'combined_capabilities';

export const compositeSchema = z.object({
  candidate: candidateSchema,
  /** Where it was found from labels. */
  counted: z
    .object({
      /** Failed trajectories that need two or more of the selected capabilities at once, and lack one of these. */
      failures: z.number().int(),
      /** All failed trajectories. */
      of: z.number().int(),
    })
    .optional(),
});
export type Composite = z.infer<typeof compositeSchema>;

/** Or why there is none. */
export type Combined = { composite: Composite } | { none: string };

/** Of all of them, where it is trained on their environments mixed: nothing is written for it. */
export function mixtureOf(selected: readonly Lacking[]): Combined {
  const unsuited = unsuitedFor(selected);
  if (unsuited !== undefined) return { none: unsuited };
  const definitions = selected.map(({ name, definition }) => `${name}: ${definition}`);
  const candidate: Candidate = {
    name: COMPOSITE,
    definition: `Several capabilities, each in conversations of its own. ${definitions.join(' ')}`,
    examples: [],
    parts: [{ names: selected.map(({ name }) => name), share: 1 }],
    mixed: true,
  };
  return { composite: { candidate } };
}

function unsuitedFor(selected: readonly Lacking[]): string | undefined {
  if (selected.length < 2) return 'fewer than two capabilities are selected';
  if (selected.some(({ name }) => name === COMPOSITE)) return `a selected capability is called ${COMPOSITE} already`;
  return undefined;
}

/** The capabilities of a composite, each once. */
export const partNames = ({ parts = [] }: Pick<Candidate, 'parts'>): string[] => [
  ...new Set(parts.flatMap(({ names }) => names)),
];

/** `refuse with tell (62%), refuse with complete (38%)`. */
export const pairsText = (parts: readonly Part[]): string =>
  parts.map(({ names, share }) => `${names.join(' with ')} (${Math.round(100 * share)}%)`).join(', ');

/**
 * How the steps of all trainings are shared: what each of the selected capabilities trains for, and the composite. Whole checkpoints where that
 * takes no more than one of them from the capabilities; the composite has what they leave. Without room for a step of each there is no composite.
 */
export function sharedSteps(o: { steps: number; selected: number; share: number; checkpointEvery: number }): {
  each: number;
  composite: number;
} {
  const { steps, selected, share, checkpointEvery } = o;
  const total = steps * selected;
  const wanted = Math.round(total * share);
  const equal = Math.floor((total - wanted) / selected);
  const whole = equal - (equal % checkpointEvery);
  const each = whole > 0 && selected * (equal - whole) <= checkpointEvery ? whole : equal;
  if (wanted < 1 || each < 1) return { each: steps, composite: 0 };
  return { each, composite: total - selected * each };
}
