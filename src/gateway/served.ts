/**
 * The policies that are served of a finished campaign, by name: its routed policy, the base model, each option of the router, and baselines. Campaigns and
 * exported folders are served alike: for both, a store holds a fitted router with its adapters.
 */
import { z } from 'zod';
import { keysOf } from '../store/campaign-index';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { badInput } from '../domain/failures';
import { kindOf } from '../domain/kinds';
import { policyNames } from '../domain/policies';
import { fixedPolicySchema, type Policy, type Sampling } from '../domain/rollout';
import { LAST_STAGE } from '../domain/work';
import type { Fingerprint } from '../policy/base-model';
import type { Report } from '../report/model';
import { type FittedRouter, fittedRouterSchema, type RouterKind } from '../routing/router';

export interface Served {
  name: string;
  /** Which campaign's router it is, for people and for `system_fingerprint`. */
  version: string;
  /** The id of the base model, which all its policies are of. */
  base: string;
  /** Policies by name: `trace` first, then the router's options, then baselines. */
  policies: ReadonlyMap<string, Policy>;
  /** Sampling of the campaign's evaluation: the defaults for requests. */
  sampling?: Sampling;
  /** The base model's, as an exported folder gives it: for the policy server that serves this folder, where the store has none. */
  fingerprint?: Fingerprint | undefined;
}

/** The router that a report is of. Throws BadInput where there is none. */
export function routerIn({ router, campaign }: Report): ArtifactRef {
  const [ref] = router?.crossValidation.routed.from ?? [];
  if (ref) return ref;
  const why = campaign.stage === LAST_STAGE ? 'its router could not be fitted' : `it stopped after ${campaign.stage}`;
  throw badInput(`campaign ${campaign.name} has no router (${why}); continue it with \`campaign run FILE\``);
}

/** Throws PluginMissing where the router is of a plug-in that `routers` lack. */
export async function servedBy(o: {
  store: ArtifactStore;
  name: string;
  router: ArtifactRef;
  routers: readonly RouterKind[];
  baselines?: FittedRouter['options'];
  sampling?: Sampling | undefined;
}): Promise<Served> {
  const { store, name, router, routers, baselines = [], sampling } = o;
  const { options, maker, constant } = await readJson(store, router, fittedRouterSchema);
  if (constant === undefined) kindOf(routers, maker);
  const fixed = new Map([...options, ...baselines].map((one) => [one.name, one.policy]));
  return {
    name,
    version: `${name}@${router.sha256.slice(0, 12)}`,
    base: options[0]!.policy.base,
    policies: new Map<string, Policy>([[policyNames.routed, { router }], ...fixed]),
    ...(sampling && { sampling }),
  };
}

const recordSchema = z.object({
  arms: z.array(z.object({ name: z.string(), best: z.object({ policy: fixedPolicySchema }).optional() })).default([]),
});

/** Returns the policies of the baselines, which the campaign's last record has, and not its report. */
export async function baselinesOf(store: ArtifactStore, name: string): Promise<FittedRouter['options']> {
  const key = (await keysOf(store.files, name)).findLast((one) => one.startsWith('record/'));
  const ref = key === undefined ? undefined : await store.find(key);
  if (!ref) return [];
  const { arms } = await readJson(store, ref, recordSchema);
  return arms.flatMap((arm) => (arm.best ? [{ name: arm.name, policy: arm.best.policy }] : []));
}
