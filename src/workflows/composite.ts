/**
 * The composite of a campaign: looked for after the selection, trained from the sum of its parts' adapters when these have ended. Invariant:
 * that it can't be trained is a row of the report, and takes nothing from its parts.
 */
import { workflowInfo } from '@temporalio/workflow';
import { type Candidate, type Lacking, mixtureOf, partNames } from '../domain/capability';
import type { EndedCapability, SelectionResult } from '../domain/results';
import type { CapabilityInput } from './capability';
import { workflowIds } from './messages';
import type { Run } from './run';
import { startCapability } from './start-child';
import type { TrainedModules } from './trained-module';

/** The selection with the composite of what was selected, or with why there is none; as it is where none is wanted. */
export function withComposite(run: Run, selection: SelectionResult): SelectionResult {
  const { selected } = selection;
  if (run.config.composites.share === 0 || selected.length === 0) return selection;
  const combined = mixtureOf(selected.map(({ candidate: { name, definition } }) => ({ name, definition })));
  return 'none' in combined
    ? { ...selection, noComposite: combined.none }
    : { ...selection, composite: combined.composite };
}

interface Part {
  candidate: Candidate;
  ended: Promise<EndedCapability>;
}

/** Waits for its parts, whatever they come to, and trains what is left of it. `parts`: all selected capabilities. */
export async function startComposite(
  run: Run,
  {
    parts,
    ...input
  }: Pick<CapabilityInput, 'campaign' | 'prepared' | 'baseRollouts' | 'candidate' | 'steps'> & {
    parts: readonly Part[];
  },
): Promise<EndedCapability> {
  const { candidate: composite, steps, prepared, campaign } = input;
  const { name } = composite;
  const workflowId = workflowIds.capability(workflowInfo().workflowId, name);
  const notStarted = (reason: string): EndedCapability => {
    run.status.child(workflowId, 'capability', name, 'failed', reason);
    return { name, workflowId, status: 'not_started', parts: composite.parts, reason };
  };
  if (steps === 0)
    return notStarted(`composites.share (${campaign.composites.share}) leaves no training step for it or its parts`);
  const names = partNames(composite);
  run.status.child(workflowId, 'capability', name, 'waiting', `for ${names.join(', ')}`);
  const own = parts.filter((part) => names.includes(part.candidate.name));
  const ended = await Promise.all(own.map(async (part) => ({ ...part, ...(await part.ended) })));
  const known: Lacking[] = ended.flatMap(({ trained, candidate }) => (trained ? [candidate] : []));
  const candidate = mixtureWith(known);
  if (!candidate) {
    const missing = ended.filter(({ trained }) => !trained).map((part) => part.name);
    return notStarted(`fewer than two of it have an adapter: ${missing.join(', ')} ended without one`);
  }
  const needed = ended.filter((part) => partNames(candidate).includes(part.name));
  const adapters = needed.flatMap((part) => part.trained?.best.policy.adapters ?? []);
  const others = parts.flatMap(({ candidate: { name: other, definition } }) =>
    needed.some((part) => part.name === other) ? [] : [{ name: other, definition }],
  );
  return startCapability(run, {
    ...input,
    candidate,
    others,
    start: { base: prepared.base, adapters },
    mixes: mixedFrom(needed),
  });
}

function mixtureWith(known: readonly Lacking[]): Candidate | undefined {
  const combined = mixtureOf(known);
  return 'composite' in combined ? combined.composite.candidate : undefined;
}

/** The environments of its parts, and how many steps these have trained on them. */
function mixedFrom(parts: readonly EndedCapability[]): NonNullable<CapabilityInput['mixes']> {
  const modules = parts.flatMap(({ module }) => module ?? []);
  const steps = Math.max(...parts.map(({ trained }) => trained?.training.steps ?? 0));
  return { modules: modules as unknown as TrainedModules, afterSteps: steps };
}
