/**
 * Capabilities: candidates, labels, selection, where failures begin, and the composite of all that are selected.
 */
import { z } from 'zod';
import { isPolicyName } from './policies';
import { countsOf } from './statistics';

export const capabilityNameSchema = z
  .string()
  .regex(/^[a-z]+(_[a-z]+){1,4}$/, 'a capability name is snake_case with 2-5 words')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already');

/** A step of a trajectory, as evidence. */
const citationSchema = z.object({
  /** The rollout's key. */
  rollout: z.string(),
  /** Index into the rollout's messages. */
  message: z.number().int().nonnegative(),
  /** What is to be seen there, in a sentence. */
  says: z.string(),
  /** The model's own sentence, where names that only its prompt knew are put in words above: further prompts hold it as it was written. */
  verbatim: z.string().optional(),
});
export type Citation = z.infer<typeof citationSchema>;

/** Of a composite: the capabilities whose environments are mixed. */
const partSchema = z.object({ names: z.array(z.string()).min(2), share: z.number() });

export const candidateSchema = z.object({
  name: capabilityNameSchema,
  definition: z.string(),
  /** Rollout keys, of both outcomes where there are any; none where nothing may be quoted. */
  examples: z.array(z.string()),
  /** Steps that show it, of both outcomes; for analysts that cite. */
  citations: z.array(citationSchema).optional(),
  /** Of a composite. */
  parts: z.array(partSchema).optional(),
  /** Of a composite: nothing is written for it, it is trained on its parts' environments in turns. */
  mixed: z.literal(true).optional(),
});
export type Candidate = z.infer<typeof candidateSchema>;
/** A capability in words. */
export type Lacking = Pick<Candidate, 'name' | 'definition'>;

/** What failed for no fault of the agent's: it is reported and never becomes a capability. */
const faultSchema = z.object({
  of: z.enum(['environment', 'user']),
  /** In a sentence or two. */
  what: z.string(),
  citations: z.array(citationSchema),
});

/** What discovery found. */
export const discoverySchema = z.object({
  candidates: z.array(candidateSchema),
  faults: z.array(faultSchema),
});
export type Discovery = z.infer<typeof discoverySchema>;

export type Label = 'NA' | 'PRESENT' | 'LACKING';

/** Where a failure begins: the earliest step that explains it, and whose it is. */
export const failureOriginSchema = z.object({
  of: z.enum(['agent', 'environment', 'user']),
  /** Index into the trajectory's messages. */
  message: z.number().int().nonnegative(),
  reason: z.string(),
});
export type FailureOrigin = z.infer<typeof failureOriginSchema>;

/** Ids are text; files of others hold numbers too, which become text. */
const ids = z.array(z.union([z.string(), z.number()]).transform(String));
/** One labeling pass in the shape that the method's authors publish (file run_NN.json). */
export const labelPassSchema = z.object({
  attempt: z.union([z.number(), z.string()]),
  totals: z.object({ total_failed: z.number().int(), total_passed: z.number().int() }),
  labels: z.record(
    z.string(),
    z.object({
      lacking_failed: ids,
      present_failed: ids,
      na_failed: ids,
      lacking_passed: ids,
      present_passed: ids,
      na_passed: ids,
    }),
  ),
  /** By capability and trajectory: why it is labeled so, and the message it hangs on. For analysts that give reasons. */
  reasons: z
    .record(
      z.string(),
      z.record(z.string(), z.object({ reason: z.string(), message: z.number().int().nonnegative().optional() })),
    )
    .optional(),
  /** Of each failed trajectory; where it is not the agent's, the trajectory is NA everywhere. For analysts that give reasons. */
  failures: z.record(z.string(), failureOriginSchema).optional(),
});
export type LabelPass = z.infer<typeof labelPassSchema>;

const meanStd = z.object({ mean: z.number(), std: z.number() });
export const selectionSchema = z.object({
  passes: z.number().int(),
  /** Set when nothing is selected: why. */
  reason: z.string().optional(),
  capabilities: z.array(
    z.object({
      name: z.string(),
      /** Over the passes that contain the capability; std is the population's. */
      coverage: meanStd,
      delta: meanStd,
      votes: z.number().int(),
      passes: z.number().int(),
      selected: z.boolean(),
      /** The first (as many as the rule's `evidence`) of its LACKING-failed trajectories, sorted as text. */
      evidence: ids,
    }),
  ),
});
export type Selection = z.infer<typeof selectionSchema>;

export interface Beginning extends FailureOrigin {
  /** Passes that name this message, of those that blame the same. */
  votes: number;
  /** Passes that blame the same. */
  blaming: number;
}

/** `origins`: one of each pass that tells it, in the order of the passes. Undefined without any. The reason is the first that names the message. */
export function beginningOf(origins: readonly FailureOrigin[]): Beginning | undefined {
  const counts = (['agent', 'environment', 'user'] as const).map((of) => origins.filter((one) => one.of === of));
  const blaming = counts.reduce((most, own) => (own.length > most.length ? own : most));
  const step = commonest(blaming.map(({ message }) => message));
  const told = blaming.find(({ message }) => message === step?.message);
  return step && told && { ...told, votes: step.votes, blaming: blaming.length };
}

/** The message that most name, of several the earliest. */
export function commonest(messages: readonly number[]): { message: number; votes: number } | undefined {
  const [first] = [...countsOf(messages)].sort(([a, votesA], [b, votesB]) => votesB - votesA || a - b);
  return first && { message: first[0], votes: first[1] };
}

export const COMPOSITE = 'combined_capabilities';

export const compositeSchema = z.object({ candidate: candidateSchema });
export type Composite = z.infer<typeof compositeSchema>;

/** Or why there is none. */
type Combined = { composite: Composite } | { none: string };

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
