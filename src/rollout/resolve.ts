/** Resolves the fixed policy that plays a conversation. A router that chooses none of its options fails the rollout; no other policy takes its place. */
import { z } from 'zod';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure, OutsideFailure, reasonOf } from '../domain/failures';
import { kindOf, kindSpecSchema } from '../domain/kinds';
import { getOrMake } from '../domain/maps';
import type { Choice, FixedPolicy, Policy } from '../domain/rollout';
import {
  chosenOptionSchema,
  fittedRouterSchema,
  type ChosenOption,
  type ChooseInput,
  type FittedRouter,
  type RouterContext,
  type RouterKind,
} from '../routing/router';

/** The beginning of a conversation, by which a router chooses. */
type Opening = Omit<ChooseInput, 'fitted'>;

export interface Resolved {
  policy: FixedPolicy;
  routed?: Choice;
}

export type Resolve = (policy: Policy, opening: Opening) => Promise<Resolved>;

interface OpenedRouter {
  fitted: FittedRouter;
  choose: (opening: Opening) => Promise<unknown>;
}

export function createResolver(o: {
  store: ArtifactStore;
  routers: readonly RouterKind[];
  context: RouterContext;
}): Resolve {
  const { store, routers, context } = o;
  const opened = new Map<string, Promise<OpenedRouter>>();

  function open(ref: ArtifactRef): Promise<OpenedRouter> {
    const read = () => readJson(store, ref, fittedRouterSchema).then((fitted) => ({ fitted, choose: chooser(fitted) }));
    const opening = getOrMake(opened, ref.sha256, read);
    opening.catch(() => opened.delete(ref.sha256));
    return opening;
  }

  function chooser(fitted: FittedRouter): OpenedRouter['choose'] {
    const { constant: chosen, maker } = fitted;
    // Nothing was predicted, so there is no probability to record.
    if (chosen !== undefined) return async () => ({ chosen, probabilities: {} }) satisfies ChosenOption;
    const kind = kindOf(routers, maker);
    if (kind.version !== maker.version) {
      const made = `it was fitted by ${maker.kind} ${maker.version}`;
      throw new Error(`${made}, and this worker has version ${kind.version}; fit it again`);
    }
    const router = kind.open(kindSpecSchema.parse({ ...(maker.options as object), kind: maker.kind }), context);
    return (opening) => router.choose({ fitted, ...opening });
  }

  return async (policy, opening) => {
    if (!('router' in policy)) return { policy };
    try {
      const { fitted, choose } = await open(policy.router);
      const routed = choiceIn(await choose(opening), fitted);
      return { policy: routed.policy, routed };
    } catch (error) {
      opening.signal.throwIfAborted();
      // A router that is damaged in the store is fitted again, and a policy server that a router asks may come back: neither is its failure.
      if (isFailure(error, 'ArtifactDamaged') || (error instanceof OutsideFailure && error.retryable)) throw error;
      throw new OutsideFailure('RouterFailed', `router ${policy.router.uri}: ${reasonOf(error)}`, error);
    }
  };
}

function choiceIn(value: unknown, { options }: FittedRouter): Choice {
  const { data, error } = chosenOptionSchema.safeParse(value);
  if (!data) throw new Error(`${z.prettifyError(error)}; a router answers with chosen and probabilities`);
  const policy = options.find(({ name }) => name === data.chosen)?.policy;
  if (!policy) throw new Error(`chosen "${data.chosen}" is none of its options`);
  return { ...data, policy };
}
