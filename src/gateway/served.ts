/**
 * What is served of a finished campaign: its routed policy, the base model, each policy that the router chooses among, and baselines, by name. A campaign and
 * an exported folder are served alike: of both there is a fitted router in a store that holds its adapters.
 */
import { readJson, type ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { OutsideFailure } from '../domain/failures';
import { policyNames } from '../domain/policies';
import type { Policy } from '../domain/rollout';
import type { Report } from '../report/model';
import { type FittedRouter, fittedRouterSchema } from '../routing/router';

export interface Served {
  /** Of the campaign. */
  name: string;
  /** Which campaign's router it is, for people and for `system_fingerprint`. */
  version: string;
  /** The id of the base model, which all its policies are of. */
  base: string;
  /** By name: `trace` first, then the router's options, then baselines. */
  policies: ReadonlyMap<string, Policy>;
}

/** The router that a report is of. Throws BadInput where there is none. */
export function routerIn({ router, campaign }: Report): ArtifactRef {
  const [ref] = router?.crossValidation.routed.from ?? [];
  if (ref) return ref;
  const why = campaign.status === 'completed' ? 'its router could not be fitted' : `it stopped after ${campaign.stage}`;
  throw new OutsideFailure(
    'BadInput',
    `campaign ${campaign.name} has no router (${why}); go on with \`campaign run FILE\`, then ask again`,
  );
}

export async function servedBy(o: {
  store: ArtifactStore;
  name: string;
  router: ArtifactRef;
  /** Which the router does not choose. */
  baselines?: FittedRouter['options'];
}): Promise<Served> {
  const { store, name, router, baselines = [] } = o;
  const { options } = await readJson(store, router, fittedRouterSchema);
  const fixed = new Map([...options, ...baselines].map((one) => [one.name, one.policy]));
  return {
    name,
    version: `${name}@${router.sha256.slice(0, 12)}`,
    base: options[0]!.policy.base,
    policies: new Map<string, Policy>([[policyNames.routed, { router }], ...fixed]),
  };
}
