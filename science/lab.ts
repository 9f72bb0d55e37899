/**
 * Policies and routers that no campaign evaluated, made of the adapters of one that ran: by the campaign's own activities, on its own test
 * tasks and in its own store. Invariant: nothing is trained and nothing is chosen by what happens on test tasks.
 */
import { MockActivityEnvironment } from '@temporalio/testing';
import { join } from 'node:path';
import { EnvironmentPool } from '../src/activities/environments';
import { createRolloutActivities } from '../src/activities';
import { openFolderStore } from '../src/artifacts/open-store';
import type { ArtifactStore } from '../src/artifacts/store';
import type { ArtifactRef } from '../src/domain/artifacts';
import { isSuccess, type Policy } from '../src/domain/rollout';
import { createPolicyClient } from '../src/policy/client';
import { createMerger } from '../src/policy/merge';
import { registry } from '../src/registry';
import { readOutcomes } from '../src/rollout/read';
import { fittedRouterSchema, type FittedRouter } from '../src/routing/router';
import { python, startEmbeddedServer } from '../test/support/embedded-server';
import type { Base } from './bases';
import type { Finished } from './campaigns';
import { Interrupted } from './processes';

/** Success by test task; null where no rollout was scored. */
export type Outcomes = ReadonlyMap<string, number | null>;
export type Option = FittedRouter['options'][number];

const CONCURRENCY = 64;

/** What a campaign's router was fitted on, in the order of its options. */
export interface Fitted {
  ref: ArtifactRef;
  router: FittedRouter;
  outcomes: { option: string; policy: Option['policy']; rollouts: ArtifactRef }[];
}

export interface Lab {
  /** One greedy rollout of each test task of the campaign. */
  evaluate(o: { of: Finished; title: string; policy: Policy }): Promise<Outcomes>;
  /** A router on some of the options, fitted on the same train tasks as the campaign's own. */
  refit(o: { of: Finished; fitted: Fitted; options: readonly string[] }): Promise<ArtifactRef>;
  close(): Promise<void>;
}

/** `home`: of the campaigns, all with this base model. */
export async function openLab(o: { home: string; base: Base; signal: AbortSignal }): Promise<Lab> {
  const { home, base, signal } = o;
  if (signal.aborted) throw new Interrupted();
  const server = await startEmbeddedServer({ model: base.path, args: ['--threads', '1'] });
  const store = storeIn(home);
  const merge = createMerger({ store, python });
  const client = createPolicyClient({ url: server.url, concurrency: CONCURRENCY, store, merge });
  const environments = new EnvironmentPool(store, registry.environments);
  const deps = { store, home, python, kinds: registry, environments, client };
  const activities = createRolloutActivities(deps);

  /** Outside a workflow, with the study's signal as its cancellation. */
  async function run<I, R>(activity: (input: I) => Promise<R>, input: I): Promise<R> {
    const context = new MockActivityEnvironment();
    const cancel = () => context.cancel();
    signal.addEventListener('abort', cancel);
    try {
      return await context.run(activity, input);
    } catch (error) {
      throw signal.aborted ? new Interrupted() : error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  return {
    async evaluate({ of, title, policy }) {
      const { name, budget, evaluation, rollouts, seed, target } = of.campaign;
      const tasks = { kind: 'plan', plan: await planOf(store, of), part: 'test' } as const;
      const { ref } = await run(activities.rollOut, {
        ...({ purpose: 'test', title, environment: target, policy, tasks, seed } as const),
        attempts: 1,
        sampling: evaluation.sampling,
        maxSteps: evaluation.maxSteps,
        concurrency: rollouts.concurrency,
        maxAttempts: rollouts.maxAttempts,
        maxBrokenShare: rollouts.maxBrokenShare,
        campaign: name,
        budget,
      });
      const outcomes = new Map<string, number | null>();
      for (const rollout of await readOutcomes({ store, ref }))
        outcomes.set(rollout.task, rollout.status === 'scored' ? Number(isSuccess(rollout)) : null);
      return outcomes;
    },

    async refit({ of, fitted, options }) {
      const outcomes = fitted.outcomes.filter(({ option }) => options.includes(option));
      const { router, seed } = of.campaign;
      const definitions = Object.fromEntries(
        (of.report.capabilities ?? []).map(({ name, definition }) => [name, definition]),
      );
      return (await run(activities.fitRouter, { router, definitions, outcomes, seed })).router;
    },

    async close() {
      client.close();
      await environments.close();
      await server.stop();
    },
  };
}

export const storeIn = (home: string): ArtifactStore => openFolderStore(join(home, 'artifacts'));

/** The router of a campaign, from what its routed policy's test rollouts were made of; undefined where it came to none. */
export async function fittedOf(
  store: ArtifactStore,
  { report }: Pick<Finished, 'report'>,
): Promise<Fitted | undefined> {
  const routed = report.arms?.find(({ role }) => role === 'routed')?.successRate?.from[0];
  const ref = routed && (await inputOf(store, routed, 'router/'));
  if (!ref) return undefined;
  const router = fittedRouterSchema.parse(JSON.parse((await store.read(ref)).toString('utf8')));
  // The outcome matrix stands first, by option.
  const { inputs } = await store.provenance(ref);
  const outcomes = router.options.map(({ name, policy }, n) => ({
    ...{ option: name, policy },
    rollouts: inputs[n] as ArtifactRef,
  }));
  return { ref, router, outcomes };
}

/** The labeling passes behind a campaign's selection. */
export async function labelsOf(store: ArtifactStore, { report }: Pick<Finished, 'report'>): Promise<ArtifactRef[]> {
  const [selection] = report.selection?.from ?? [];
  if (!selection) return [];
  const { inputs } = await store.provenance(selection);
  const keyed = await Promise.all(inputs.map(async (ref) => ({ ref, key: (await store.provenance(ref)).key })));
  return keyed.filter(({ key }) => key.startsWith('labels/')).map(({ ref }) => ref);
}

async function planOf(store: ArtifactStore, { name, report }: Finished): Promise<ArtifactRef> {
  const base = report.arms?.find(({ role }) => role === 'base')?.successRate?.from[0];
  const plan = base && (await inputOf(store, base, 'plan/'));
  if (!plan) throw new Error(`${name}: the test rollouts of its base model name no plan; run it to its end`);
  return plan;
}

async function inputOf(store: ArtifactStore, ref: ArtifactRef, prefix: string): Promise<ArtifactRef | undefined> {
  for (const input of (await store.provenance(ref)).inputs)
    if ((await store.provenance(input)).key.startsWith(prefix)) return input;
  return undefined;
}
