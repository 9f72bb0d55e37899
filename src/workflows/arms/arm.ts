/** An arm: one way to spend as many training rollouts as `trace`. It runs as a child workflow and comes to policies to be evaluated. */
import type { Campaign } from '../../domain/campaign';
import type { Kind } from '../../domain/kind';
import type { ArmOutcome, CapabilityResult, Prepared } from '../../domain/results';
import type { ChildStatus } from '../child-status';

export interface ArmContext {
  campaign: Campaign;
  prepared: Prepared;
  /** What the arm is called in this campaign. */
  name: string;
  /** Training rollouts: the most that `trace` may spend (all selected capabilities trained to their last step), or, `after`, what it spent. */
  budget: number;
  /** Of an arm that starts after them; empty otherwise. */
  capabilities: readonly CapabilityResult[];
  status: ChildStatus;
}

/** Opened with its options, an arm is its way to an outcome. */
export type Arm = (context: ArmContext) => Promise<ArmOutcome>;

export interface ArmKind extends Kind<Arm> {
  /** Whether the router may give conversations to it. */
  readonly routable: boolean;
  /** Beside the capabilities, or after them where it builds on what they made. */
  readonly starts: 'beside' | 'after';
}
