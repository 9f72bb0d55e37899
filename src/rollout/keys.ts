/**
 * Keys of rollouts and batches. Invariant: two rollouts have the same key exactly if the same thing was asked for; whatever can
 * change a record's content is in its key.
 */
import { digest, seedOf } from '../artifacts/hash';
import type { EnvironmentDescription } from '../domain/environment';
import type { Hints, Policy, Sampling } from '../domain/rollout';
import { contentOf, partsOf } from '../policy/merge';

/** Changes whenever the engine would make another record from the same inputs. */
const ENGINE_FORMAT = 3;

interface BatchInputs {
  /** A synthesized environment's version is its module's sha256. */
  environment: Pick<EnvironmentDescription, 'name' | 'version'>;
  policy: Policy;
  sampling: Sampling;
  seed: number;
  maxSteps?: number;
  /** Of a training: so that a task that is drawn again is played anew, also where no step since has changed the policy. */
  step?: number;
}

export interface PlannedRollout {
  key: string;
  task: string;
  attempt: number;
  /** The policy is shown the environment's hint, where it gives one. */
  hinted: boolean;
}

export interface BatchPlan {
  key: string;
  /** Digest of all but the tasks, the attempts and the hints: batches of one setting may hold the same rollouts. */
  setting: string;
  /** By task (as text), then by attempt. */
  rollouts: PlannedRollout[];
}

export function planBatch({
  tasks,
  attempts,
  hints,
  ...inputs
}: BatchInputs & { tasks: string[]; attempts: number; hints?: Hints }): BatchPlan {
  const { environment, policy, sampling, seed, maxSteps, step } = inputs;
  const setting = digest({
    format: ENGINE_FORMAT,
    environment: [environment.name, environment.version],
    policy: policyKey(policy),
    sampling: [sampling.temperature, sampling.topP, sampling.maxTokens, ...thinkingOf(sampling)],
    seed,
    maxSteps,
    step,
  });
  const hintedAttempts = Math.round((hints?.share ?? 0) * attempts);
  const planned = (task: string, attempt: number): PlannedRollout => {
    const hinted = attempt < hintedAttempts;
    // Whether others of its batch are hinted is no part of a rollout's key.
    return { key: digest([setting, task, attempt, ...(hinted ? ['hinted'] : [])]), task, attempt, hinted };
  };
  const rollouts = [...tasks]
    .sort()
    .flatMap((task) => Array.from({ length: attempts }, (_, attempt) => planned(task, attempt)));
  return { key: `rollouts/${digest(rollouts.map(({ key }) => key))}`, setting, rollouts };
}

const thinkingOf = ({ thinking = 'kept' }: Sampling) => (thinking === 'kept' ? [] : [thinking]);

function policyKey(policy: Policy): object {
  if ('router' in policy) return { router: policy.router.sha256 };
  const { base, adapters, prompt } = policy;
  return { base, adapters: contentOf(partsOf(adapters)), prompt };
}

/** The sampling seed of one turn of a rollout. */
export const turnSeed = ({ key, turn }: { key: string; turn: number }): number => seedOf(`${key}/${turn}`);

/** The seed of a router's choice for a rollout. */
export const choiceSeed = (key: string): number => seedOf(`${key}/choice`);
