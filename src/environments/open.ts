/** Opens environments by their specs in a campaign. */
import type { Environment } from '../domain/environment';
import { type EnvironmentSpec, kindOf } from '../domain/kinds';
import type { EnvironmentContext, EnvironmentKind } from './kinds';

export async function openEnvironment(
  spec: EnvironmentSpec,
  { kinds, ...context }: EnvironmentContext & { kinds: readonly EnvironmentKind[] },
): Promise<Environment> {
  return kindOf(kinds, spec).open(spec, context);
}

export function describeSpec(spec: EnvironmentSpec, kinds: readonly EnvironmentKind[]) {
  const { kind, program, label } = kindOf(kinds, spec);
  const { silenceSeconds, user, judge } = program?.(spec) ?? {};
  return {
    label: label?.(spec) ?? kind,
    /** Seconds without an answer after which the process counts as hung; undefined without a process. */
    silenceSeconds,
    user,
    judge,
  };
}
