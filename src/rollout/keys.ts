/**
 * Keys of rollouts and batches. Invariant: two rollouts have the same key exactly if the same thing was asked for; whatever can
 * change a record's content is in its key.
 */
import { createHash } from 'node:crypto';
import { digest } from '../artifacts/hash';
import type { EnvironmentDescription } from '../domain/environment';
import type { Policy, Sampling } from '../domain/rollout';

/** Changes whenever the engine would make another record from the same inputs. */
const ENGINE_FORMAT = 2;

export interface BatchInputs {
  /** A synthesized environment's version is its module's sha256. */
  environment: Pick<EnvironmentDescription, 'name' | 'version'>;
  policy: Policy;
  sampling: Sampling;
  seed: number;
  maxSteps?: number;
  maskReadOnlyTurns: boolean;
}

export interface PlannedRollout {
  key: string;
  task: string;
  attempt: number;
}

export interface BatchPlan {
  key: string;
  /** By task (as text), then by attempt. */
  rollouts: PlannedRollout[];
}

export function planBatch({
  tasks,
  attempts,
  ...inputs
}: BatchInputs & { tasks: string[]; attempts: number }): BatchPlan {
  const { environment, policy, sampling, seed, maxSteps, maskReadOnlyTurns } = inputs;
  const common = digest({
    format: ENGINE_FORMAT,
    environment: [environment.name, environment.version],
    policy: [policy.base, policy.adapters.map(({ ref, weight }) => [ref.sha256, weight])],
    sampling: [sampling.temperature, sampling.topP, sampling.maxTokens],
    seed,
    maxSteps,
    maskReadOnlyTurns,
  });
  const rollouts = [...tasks]
    .sort()
    .flatMap((task) =>
      Array.from({ length: attempts }, (_, attempt) => ({ key: digest([common, task, attempt]), task, attempt })),
    );
  return { key: `rollouts/${digest(rollouts.map(({ key }) => key))}`, rollouts };
}

/** The sampling seed of one turn of a rollout: 31 bits, which every server takes. */
export const turnSeed = ({ key, turn }: { key: string; turn: number }): number =>
  createHash('sha256').update(`${key}/${turn}`).digest().readUInt32BE(0) >>> 1;
