/**
 * The capability stage: one child per selected capability and per arm, side by side, and one for a composite after its parts. Invariants: one that fails for good is a row of the
 * report; when the stage fails, all of them have ended, so that the campaign that is started again does not meet them.
 */
import {
  defineSearchAttributeKey,
  TypedSearchAttributes,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import { CancellationScope, ParentClosePolicy, sleep, startChild, workflowInfo } from '@temporalio/workflow';
import { armName, type Campaign } from '../domain/campaign';
import { type Candidate, type Lacking, mixtureOf, partNames, sharedSteps } from '../domain/capability';
import { kindOf } from '../domain/kinds';
import { escapeMarkdown } from '../domain/plain-text';
import { type EndedArm, type EndedCapability, rolloutsOfTrace, type SelectionResult } from '../domain/results';
import type { ArmInput } from './arm';
import type { ArmKind } from './arms/arm';
import type { CapabilityInput } from './capability';
import { endedIn, reasonOf, resultingReason } from './failures';
import { searchAttributeNames, workflowIds } from './messages';
import { checkAdapters, required, rollOutTarget, type Run } from './run';
import { activity, basePolicy } from './steps';
import type { TrainedModules } from './training';

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected, candidates, composite } = required(found.selection);
  found.capabilities = [];
  found.arms = [];
  if (selected.length === 0) return;
  // Now it is known how many may be added up, and no training is spent yet.
  if (selected.length > 1) await checkAdapters(run, selected.length);
  const baseRollouts = required(found.baseRollouts).ref;
  const baseHeldOut = await rollOutTarget(run, {
    purpose: 'held_out',
    title: 'base on the held-out train tasks',
    policy: basePolicy(prepared.base),
    tasks: 'validation',
    attempts: campaign.validation.trials,
  });
  found.baseHeldOut = baseHeldOut;
  const { steps, groupsPerStep, groupSize, checkpointEvery } = campaign.training;
  const share = composite ? campaign.composites.share : 0;
  const shared = sharedSteps({ steps, selected: selected.length, share, checkpointEvery });
  const common = { campaign, prepared, baseRollouts, candidates };
  // What trace spends if every selected capability comes to an adapter, and so does the composite where there is one.
  const most = steps * groupsPerStep * groupSize * selected.length;
  const children = new CancellationScope();
  const begun: Promise<unknown>[] = [];
  const begin = <R>(child: Promise<R>): Promise<R> => {
    begun.push(child);
    return child;
  };
  const armsThatStart = (when: ArmKind['starts'], budget: number, capabilities: EndedCapability[]) =>
    campaign.arms
      .filter((spec) => kindOf(run.arms, spec).starts === when)
      .map((spec) => begin(startArm(run, { campaign, prepared, spec, budget, capabilities })));
  const sideBySide = () => {
    const parts = selected.map(({ candidate }) => {
      const others = selected.flatMap(({ candidate: other }) => (other === candidate ? [] : [wordsOf(other)]));
      const start = { start: basePolicy(prepared.base), startHeldOut: baseHeldOut, steps: shared.each };
      return { candidate, ended: begin(startCapability(run, { ...common, candidate, others, ...start })) };
    });
    const combined = composite
      ? [begin(startComposite(run, { ...common, candidate: composite.candidate, parts, steps: shared.composite }))]
      : [];
    const running = Promise.all([...parts.map(({ ended }) => ended), ...combined]);
    return Promise.all([
      running,
      Promise.all(armsThatStart('beside', most, [])),
      running.then((done) => Promise.all(armsThatStart('after', rolloutsOfTrace({ capabilities: done }), done))),
    ]);
  };
  const [capabilities, beside, after] = await children.run(sideBySide).catch(async (error: unknown) => {
    children.cancel();
    await Promise.allSettled(begun);
    throw error;
  });
  found.capabilities = capabilities;
  found.arms = await compared(run, [...beside, ...after]);
}

/** At what trace really spent, in the order of the campaign file. */
async function compared(run: Run, arms: EndedArm[]): Promise<EndedArm[]> {
  const { config, found } = run;
  const spent = rolloutsOfTrace({ ...found, arms });
  const inOrder = config.arms.flatMap((spec) => arms.find(({ name }) => name === armName(spec)) ?? []);
  return Promise.all(inOrder.map((arm) => within(run, arm, spent)));
}

const wordsOf = ({ name, definition }: Lacking): Lacking => ({ name, definition });

/** An arm is compared at what trace really spent: its best iteration among those within so many training rollouts. */
async function within({ config, status }: Run, arm: EndedArm, spent: number): Promise<EndedArm> {
  const { name, result } = arm;
  if (!result) return arm;
  const best = await status.gate.step(() =>
    activity(config, `the best iteration of ${name}`).bestIteration({ result, rollouts: spent }),
  );
  if (best) return { ...arm, best };
  const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
  return { ...arm, status: 'failed', reason };
}

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const capabilityAttribute = defineSearchAttributeKey(searchAttributeNames.capability, 'KEYWORD');

export async function startCapability(run: Run, input: CapabilityInput): Promise<EndedCapability> {
  const { name, parts } = input.candidate;
  const failed = (reason: string, workflowId: string): EndedCapability => {
    return { name, workflowId, status: 'failed', ...(parts && { parts }), reason };
  };
  return child(run, { kind: 'capability', name, args: [input], failed });
}

export async function startArm(run: Run, input: ArmInput): Promise<EndedArm> {
  const { kind } = input.spec;
  const name = armName(input.spec);
  const failed = (reason: string, workflowId: string): EndedArm => {
    return { name, kind, workflowId, status: 'failed', routable: false, reason };
  };
  return child(run, { kind: 'arm', name, args: [input], failed });
}

interface Child<R> {
  /** Also the type of its workflow. */
  kind: 'capability' | 'arm';
  name: string;
  args: unknown[];
  failed: (reason: string, workflowId: string) => R;
}

/** Runs a child to its result, or makes one of its failure; one whose result is kept is not run. */
async function child<R extends EndedCapability | EndedArm>(run: Run, o: Child<R>): Promise<R> {
  const { kind, name } = o;
  const { status, kept } = run;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  status.child(workflowId, kind, name, 'waiting', '');
  const known = kept.find((one) => one.workflowId === workflowId) as R | undefined;
  const result = known ?? (await ended(run, workflowId, o));
  const done = result.status === 'trained' || result.status === 'done';
  status.child(workflowId, kind, name, done ? 'done' : 'failed', result.reason ?? '');
  return result;
}

async function ended<R>({ config, status }: Run, workflowId: string, o: Child<R>): Promise<R> {
  const { kind, name, args, failed } = o;
  try {
    const options = { ...childOptions(config, { workflowId, kind, name }), args };
    const started = await afterItsEarlierRun(() => status.gate.step(() => startChild(kind, options)));
    // Not sooner: a pause reaches children that run, and there is none before this.
    status.child(workflowId, kind, name, 'running', '');
    return (await started.result()) as R;
  } catch (error) {
    status.child(workflowId, kind, name, 'failed', reasonOf(error));
    return endedIn<R>(error) ?? failed(resultingReason(error), workflowId);
  }
}

const ENDING = { every: '5 seconds', looks: 60 } as const;

/** A campaign that somebody terminated leaves children behind that are still ending: they save what they have. They are waited for. */
async function afterItsEarlierRun<R>(start: () => Promise<R>): Promise<R> {
  for (let look = 1; ; look++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError) || look === ENDING.looks) throw error;
      await sleep(ENDING.every);
    }
  }
}

const childOptions = (campaign: Campaign, o: { workflowId: string; kind: string; name: string }) => ({
  workflowId: o.workflowId,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: escapeMarkdown(`${o.kind}: ${o.name}`),
  typedSearchAttributes: new TypedSearchAttributes([
    { key: campaignAttribute, value: campaign.name },
    { key: capabilityAttribute, value: o.name },
  ]),
});

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
  }: Pick<CapabilityInput, 'campaign' | 'prepared' | 'baseRollouts' | 'candidates' | 'candidate' | 'steps'> & {
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
