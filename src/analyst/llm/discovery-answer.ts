/** The answer to a request for capabilities. Invariant: every step it cites was shown, and is of the outcome that it is cited for. */
import { z } from 'zod';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { jsonIn } from '../../language-model/json';
import type { Read } from '../../language-model/answer';
import { bounded, capabilityDefects, shapeDefects, stepDefect, type Told } from './checks';

const text = z.string().trim().min(1, 'it is empty; say it in a sentence');
const stepSchema = z.object({ rollout: z.string(), message: z.number().int(), says: text });
/** With the rollout by the id that the model knows. */
export type Step = z.infer<typeof stepSchema>;

const steps = z.array(stepSchema);
const answerSchema = z.object({
  capabilities: z.array(z.object({ name: z.string(), definition: text, lacking: steps, shown: steps })),
  faults: z.array(z.object({ of: z.enum(['environment', 'user']), what: text, steps: steps.min(1) })),
});
export type Found = z.infer<typeof answerSchema>;
export type Proposal = Found['capabilities'][number];

export function readDiscovery(o: {
  text: string;
  /** What was shown, by the ids that the model knows. */
  rollouts: ReadonlyMap<string, ScoredRollout>;
  told: Told;
  maxCandidates: number;
}): Read<Found> {
  const { rollouts, told, maxCandidates } = o;
  const json = jsonIn(o.text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = answerSchema.safeParse(json.value);
  if (error) return { defects: shapeDefects(error) };
  const anyPassed = [...rollouts.values()].some(isSuccess);
  const defects = [
    ...capabilityDefects({ capabilities: data.capabilities, at: 'capabilities', maxCandidates, told }),
    ...data.capabilities.flatMap(({ lacking, shown }, n) => [
      ...citedDefects({ steps: lacking, at: `capabilities.${n}.lacking`, passed: false, wanted: true, rollouts }),
      ...citedDefects({ steps: shown, at: `capabilities.${n}.shown`, passed: true, wanted: anyPassed, rollouts }),
    ]),
    ...data.faults.flatMap((fault, n) =>
      fault.steps.flatMap((step, m) => {
        const defect = stepDefect(step, rollouts);
        return defect === undefined ? [] : [`faults.${n}.steps.${m}: ${defect}`];
      }),
    ),
  ];
  return defects.length > 0 ? { defects: bounded(defects) } : { value: data };
}

/** Steps that are to be of one outcome; `wanted`: at least one. */
function citedDefects(o: {
  steps: readonly Step[];
  at: string;
  passed: boolean;
  wanted: boolean;
  rollouts: ReadonlyMap<string, ScoredRollout>;
}): string[] {
  const { steps, at, passed, wanted, rollouts } = o;
  const outcome = passed ? 'PASSED' : 'FAILED';
  if (steps.length === 0 && wanted) return [`${at} is empty; cite at least one step of a trajectory that ${outcome}`];
  return steps.flatMap((step, n) => {
    const defect = stepDefect(step, rollouts);
    if (defect !== undefined) return [`${at}.${n}: ${defect}`];
    const rollout = rollouts.get(step.rollout);
    if (rollout && isSuccess(rollout) !== passed)
      return [`${at}.${n}: ${step.rollout} is no trajectory that ${outcome}; cite one that did, or leave the step out`];
    return [];
  });
}
