/** From an environment's spec in a campaign to the environment. Invariant: the engine sees one interface, whatever is behind it. */
import { chatModelSchema, type ChatModel } from '../domain/endpoints';
import type { Environment } from '../domain/environment';
import { type EnvironmentSpec, kindOf } from '../domain/kinds';
import type { Role } from '../partners/errors';
import { environments } from '.';
import type { EnvironmentContext, EnvironmentKind } from './kinds';

/** Rejects if nobody knows the kind. */
export async function openEnvironment(
  spec: EnvironmentSpec,
  { kinds = environments, ...context }: EnvironmentContext & { kinds?: readonly EnvironmentKind[] },
): Promise<Environment> {
  return kindOf(kinds, spec).open(spec, context);
}

/** What is known of an environment before it is opened. */
export function describeSpec(spec: EnvironmentSpec, kinds: readonly EnvironmentKind[] = environments) {
  const { kind, options, label, published } = kindOf(kinds, spec);
  const model = (role: Role): ChatModel | undefined =>
    role in options ? chatModelSchema.optional().parse(spec[role]) : undefined;
  const { silenceSeconds } = spec;
  return {
    label: label?.(spec) ?? kind,
    isPublished: published !== undefined,
    /** Without an answer, after which its process counts as hung; undefined for one that has none. */
    silenceSeconds: typeof silenceSeconds === 'number' ? silenceSeconds : undefined,
    /** The models that play its other parties. */
    user: model('user'),
    judge: model('judge'),
  };
}
