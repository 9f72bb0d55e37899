/**
 * Which fixed policy plays a conversation. A router's choice is one of the policies that it was fitted for, or made of their adapters; anything else
 * breaks the rollout and is never replaced by a choice of ours.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure, OutsideFailure, reasonOf } from '../domain/failures';
import { kindOf, kindSpecSchema } from '../domain/kinds';
import type { Message, ToolSchema } from '../domain/messages';
import { choiceSchema, type Choice, type FixedPolicy, type Policy } from '../domain/rollout';
import { fittedRouterSchema, type FittedRouter, type RouterContext, type RouterKind } from '../routing/router';

/** What a router chooses by. */
interface Opening {
  /** As the agent sees them. */
  messages: readonly Message[];
  tools: readonly ToolSchema[];
  seed: number;
  signal: AbortSignal;
}

export interface Resolved {
  policy: FixedPolicy;
  /** Where a router chose it. */
  routed?: Choice;
}

export type Resolve = (policy: Policy, opening: Opening) => Promise<Resolved>;

interface OpenedRouter {
  fitted: FittedRouter;
  choose: (opening: Opening) => Promise<unknown>;
}

/** Reads and opens every router once. */
export function createResolver(o: {
  store: ArtifactStore;
  routers: readonly RouterKind[];
  context: RouterContext;
}): Resolve {
  const { store, routers, context } = o;
  const opened = new Map<string, Promise<OpenedRouter>>();

  function open(ref: ArtifactRef): Promise<OpenedRouter> {
    const known = opened.get(ref.sha256);
    if (known) return known;
    const opening = readJson(store, ref, fittedRouterSchema).then((fitted) => ({ fitted, choose: chooser(fitted) }));
    opening.catch(() => opened.delete(ref.sha256));
    opened.set(ref.sha256, opening);
    return opening;
  }

  function chooser(fitted: FittedRouter): OpenedRouter['choose'] {
    const { constant, maker } = fitted;
    if (constant !== undefined) {
      const policy = fitted.options.find(({ name }) => name === constant)?.policy;
      if (!policy) throw new Error(`constant "${constant}" is none of its options`);
      // Nothing was predicted, so there is no probability to record.
      return async () => ({ chosen: constant, policy, probabilities: {} }) satisfies Choice;
    }
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
      const begun = performance.now();
      const choice = checked(await choose(opening), fitted);
      const routed = { ...choice, milliseconds: Math.round(1000 * (performance.now() - begun)) / 1000 };
      return { policy: routed.policy, routed };
    } catch (error) {
      opening.signal.throwIfAborted();
      // One that is damaged in the store has not failed: it is to be fitted again. And a policy server that a router asks may come back.
      if (isFailure(error, 'ArtifactDamaged') || (error instanceof OutsideFailure && error.retryable)) throw error;
      throw new OutsideFailure('RouterFailed', `router ${policy.router.uri}: ${reasonOf(error)}`, error);
    }
  };
}

/** Throws unless what was chosen is made of what the router was fitted for. */
function checked(value: unknown, { options }: FittedRouter): Choice {
  const parsed = choiceSchema.safeParse(value);
  if (!parsed.success)
    throw new Error(`${z.prettifyError(parsed.error)}; a router answers with chosen, policy and probabilities`);
  const { chosen, policy } = parsed.data;
  const known = options.map((option) => option.policy);
  const wrong = (what: string) => new Error(`chosen "${chosen}": ${what} is none of its options'`);
  if (!known.some(({ base }) => base === policy.base)) throw wrong(`base model ${policy.base}`);
  const adapters = new Set(known.flatMap((one) => one.adapters.map(({ ref }) => ref.sha256)));
  const unknown = policy.adapters.find(({ ref }) => !adapters.has(ref.sha256));
  if (unknown) throw wrong(`adapter ${unknown.ref.uri}`);
  const { prompt } = policy;
  if (prompt && !known.some((one) => isDeepStrictEqual(one.prompt, prompt))) throw wrong('its prompt');
  return parsed.data;
}
