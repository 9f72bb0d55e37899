/**
 * After the test: every single policy, the sum of all and the routed one answer plain requests, to see that they keep what the base model
 * could do. Invariant: what could not be done of it stands in the record with its reason; it never ends a campaign.
 */
import type { ArtifactRef } from '../domain/artifacts';
import { plainSpec } from '../domain/environment-spec';
import { policyNames } from '../domain/policy-names';
import type { PlainResult } from '../domain/results';
import type { Policy } from '../domain/rollout';
import { resultingReason } from './failure';
import { options, required, type Run } from './run';
import { rollOut, rollouts } from './steps';

type Ended = PlainResult['policies'][number] | PlainResult['failed'][number];

/** Nothing where the campaign has no plain requests. */
export async function plainRequests(run: Run): Promise<void> {
  const { config, found } = run;
  const count = config.evaluation.plainRequests;
  if (count === 0) return;
  const { router, sums } = required(found.router);
  // Of sums only the largest, to save batches: what a smaller one loses is not measured.
  const largest = sums.at(-1)?.join('+');
  const smaller = new Set(sums.map((parts) => parts.join('+')).filter((name) => name !== largest));
  const policies: { name: string; policy: Policy }[] = [
    ...options(run).filter(({ name }) => !smaller.has(name)),
    ...(router ? [{ name: policyNames.routed, policy: { router } }] : []),
  ];
  const ended = await Promise.all(policies.map((one) => answers(run, one, count)));
  const batches = ended.flatMap((one) => ('rollouts' in one ? [one] : []));
  const measures = await measured(run, batches);
  found.plain = {
    policies: batches,
    failed: [...ended, measures].flatMap((one) => ('reason' in one ? [one] : [])),
    ...('ref' in measures && { measures: measures.ref }),
  };
}

async function answers(run: Run, { name, policy }: { name: string; policy: Policy }, count: number): Promise<Ended> {
  const { config, status } = run;
  try {
    const batch = await status.gate.step(() =>
      rollOut(config, {
        purpose: 'plain',
        title: `plain requests: ${name}`,
        environment: plainSpec,
        policy,
        tasks: { kind: 'plain', count },
        attempts: 1,
      }),
    );
    return { name, rollouts: status.count(batch) };
  } catch (error) {
    return { name, reason: resultingReason(error) };
  }
}

async function measured(
  { config, prepared, status }: Run,
  batches: PlainResult['policies'],
): Promise<{ ref: ArtifactRef } | PlainResult['failed'][number]> {
  const title = 'measure plain answers';
  try {
    const ref = await status.gate.step(() =>
      rollouts(config, title).measurePlain({
        base: prepared.base,
        batches: batches.map(({ name, rollouts: batch }) => ({ name, rollouts: batch.ref })),
      }),
    );
    return { ref };
  } catch (error) {
    return { name: title, reason: resultingReason(error) };
  }
}
