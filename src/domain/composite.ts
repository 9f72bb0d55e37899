/**
 * The composite: one more candidate, of the selected capabilities that failures need together, or of all of them. Invariants: pure functions;
 * nothing depends on the order of passes or ids; the shares of its pairs sum to 1; the steps of all trainings do not change with it.
 */
import { z } from 'zod';
import type { SelectionRule } from './campaign';
import { candidateSchema, type Candidate, type Lacking, type LabelPass, type Pair, type Part } from './capability';

export const COMPOSITE = 'combined_capabilities';

/** Of the failures that count for a pair: rarer ones are left out. */
const LEAST_SHARE = 0.1;

/** Of the failures: what more of them than this need goes with everything, and so with nothing that they need less often in particular. */
const MOST_NEEDED = 0.9;

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

export const combinedSchema = z.union([
  z.object({ composite: compositeSchema }),
  /** Why there is none. */
  z.object({ none: z.string() }),
]);
export type Combined = z.infer<typeof combinedSchema>;

/** From the passes that labeled them. `examples` are all failures that count for one of its pairs, sorted as text. */
export function compositeOf({
  passes,
  selected,
  rule: { rho },
}: {
  passes: readonly LabelPass[];
  selected: readonly Lacking[];
  rule: Pick<SelectionRule, 'rho'>;
}): Combined {
  const unsuited = unsuitedFor(selected);
  if (unsuited !== undefined) return { none: unsuited };
  const common = new Set(selected.flatMap(({ name }) => (needOf(passes, name) > MOST_NEEDED ? [name] : [])));
  const apart = pairsOf(selected.map(({ name }) => name)).filter(([a, b]) => common.has(a) === common.has(b));
  if (apart.length === 0)
    return { none: `nearly every failure needs ${[...common].join()}, with whatever else it needs` };
  const failed = new Set(passes.flatMap((pass) => Object.values(pass.labels).flatMap(failedIn)));
  const pairs = apart.map((pair) => ({ names: pair, ids: lackingWithin(passes, pair) }));
  const lacking = new Set(pairs.flatMap(({ ids }) => ids));
  const counted = `${lacking.size} of ${failed.size} failures need two selected capabilities at once and lack one`;
  if (lacking.size === 0 || lacking.size < rho * failed.size)
    return { none: `${counted}, in most of the passes: less than selection.rho (${rho})` };
  const frequent = pairs.filter(({ ids }) => ids.length > 0 && ids.length >= LEAST_SHARE * lacking.size);
  if (frequent.length === 0)
    return { none: `${counted}, but no two of them together in a tenth of these: there is no pair to practise` };
  const candidate = candidateOf({
    pairs: frequent.map(({ names: pair, ids }) => ({ names: pair, share: ids.length })),
    known: selected,
    examples: [...new Set(frequent.flatMap(({ ids }) => ids))].sort(),
  });
  return { composite: { candidate, counted: { failures: lacking.size, of: failed.size } } };
}

/** Of pairs that somebody else found. */
export function statedComposite({
  pairs,
  selected,
}: {
  pairs: readonly Pair[];
  selected: readonly Lacking[];
}): Combined {
  const unsuited = unsuitedFor(selected);
  if (unsuited !== undefined) return { none: unsuited };
  const candidate = restrictedTo({ parts: [...pairs], examples: [] }, selected);
  return candidate ? { composite: { candidate } } : { none: 'of no given pair both capabilities are selected' };
}

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

/** The composite of those of its pairs whose capabilities are both among `known`; undefined where none is. */
export function restrictedTo(
  composite: Pick<Candidate, 'parts' | 'examples'>,
  known: readonly Lacking[],
): Candidate | undefined {
  const has = (name: string): boolean => known.some((one) => one.name === name);
  const pairs = (composite.parts ?? []).filter(({ names }) => names.every(has));
  return pairs.length > 0 ? candidateOf({ pairs, known, examples: composite.examples }) : undefined;
}

/** The capabilities of a composite, each once. */
export const partNames = ({ parts = [] }: Pick<Candidate, 'parts'>): string[] => [
  ...new Set(parts.flatMap(({ names }) => names)),
];

/** `refuse with tell (62%), refuse with complete (38%)`. */
export const pairsText = (parts: readonly Part[]): string =>
  parts.map(({ names, share }) => `${names.join(' with ')} (${Math.round(100 * share)}%)`).join(', ');

function candidateOf(o: { pairs: readonly Part[]; known: readonly Lacking[]; examples: string[] }): Candidate {
  const total = o.pairs.reduce((sum, { share }) => sum + share, 0);
  const parts = o.pairs.map(({ names, share }) => ({ names, share: share / total }));
  const definitions = partNames({ parts }).map(
    (name) => `${name}: ${o.known.find((one) => one.name === name)?.definition ?? ''}`,
  );
  const definition = `Several capabilities in one conversation, each where it is needed: ${pairsText(parts)}. ${definitions.join(' ')}`;
  return { name: COMPOSITE, definition, examples: o.examples, parts };
}

/** The share of the failures that need it: those that are not NA. */
function needOf(passes: readonly LabelPass[], name: string): number {
  const labels = passes.flatMap((pass) => (Object.hasOwn(pass.labels, name) ? [pass.labels[name]!] : []));
  const all = labels.flatMap(failedIn).length;
  return all === 0 ? 0 : 1 - labels.flatMap(({ na_failed }) => na_failed).length / all;
}

const pairsOf = (names: readonly string[]): [string, string][] =>
  names.flatMap((first, n) => names.slice(n + 1).map((second): [string, string] => [first, second]));

type Labels = LabelPass['labels'][string];
const failedIn = ({ lacking_failed, present_failed, na_failed }: Labels): string[] => [
  ...lacking_failed,
  ...present_failed,
  ...na_failed,
];

/**
 * Failures that need both and lack one at least, in more than half of the passes that label the trajectory. What went wrong first is labeled
 * LACKING, and what it hides PRESENT, as in any doubt: that both are lacking can seldom be seen, that both are needed can, as neither is NA.
 */
function lackingWithin(passes: readonly LabelPass[], [first, second]: readonly [string, string]): string[] {
  const [labeled, lacking] = [new Map<string, number>(), new Map<string, number>()];
  const add = (to: Map<string, number>, id: string) => to.set(id, (to.get(id) ?? 0) + 1);
  for (const { labels } of passes) {
    const [a, b] = [first, second].map((name) => (Object.hasOwn(labels, name) ? labels[name] : undefined));
    if (!a || !b) continue;
    const [inB, notNeeded] = [new Set(failedIn(b)), new Set([...a.na_failed, ...b.na_failed])];
    const lacks = new Set([...a.lacking_failed, ...b.lacking_failed]);
    for (const id of failedIn(a)) {
      if (!inB.has(id)) continue;
      add(labeled, id);
      if (lacks.has(id) && !notNeeded.has(id)) add(lacking, id);
    }
  }
  return [...lacking].filter(([id, count]) => 2 * count > (labeled.get(id) ?? 0)).map(([id]) => id);
}

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
