/**
 * The capability stage: one child per selected capability and per arm, side by side, and one for a composite after its parts. Invariants: one that fails for good is a row of the
 * report; when the stage fails, all of them have ended, so that the campaign that is started again does not meet them.
 */
import { CancellationScope } from '@temporalio/workflow';
import { armName } from '../domain/campaign';
import { type Lacking, sharedSteps } from '../domain/capability';
import { kindOf } from '../domain/kinds';
import { rolloutsOfTrace, type EndedArm, type EndedCapability } from '../domain/results';
import type { ArmKind } from './arms/arm';
import { checkAdapters } from './base-check';
import { startComposite } from './composite';
import { required, rollOutTarget, type Run } from './run';
import { startArm, startCapability } from './start-child';
import { basePolicy, control } from './steps';

export async function capabilitiesStage(run: Run): Promise<void> {
  const { config: campaign, prepared, found } = run;
  const { selected, composite } = required(found.selection);
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
    tasks: 'heldOut',
    attempts: campaign.validation.trials,
  });
  found.baseHeldOut = baseHeldOut;
  const { steps, groupsPerStep, groupSize, checkpointEvery } = campaign.training;
  const share = composite ? campaign.composites.share : 0;
  const shared = sharedSteps({ steps, selected: selected.length, share, checkpointEvery });
  const common = { campaign, prepared, baseRollouts };
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
    control(config, `the best iteration of ${name}`).bestIteration({ result, rollouts: spent }),
  );
  if (best) return { ...arm, best };
  const reason = `none of its iterations is within the ${spent} training rollouts that trace spent`;
  return { ...arm, status: 'failed', reason };
}
