/** What `campaign view` answers to the page (web/src/conversations.tsx). */
import type { ReportedMessage } from '../report/capability-model';

/** A rollout in a list. */
export interface ListedRollout {
  /** Its key, by which it is addressed for ever. */
  id: string;
  /** What it was made for, and of which arm, capability or training. */
  purpose: string;
  of: string;
  task: string;
  attempt: number;
  /** `solved`, `failed` or `broken`. */
  outcome: string;
  /** Absent of a broken one. */
  reward?: number;
  /** What ended it; of a broken one the type of its error. */
  stop: string;
  steps: number;
  branch?: string;
  /** The capabilities that passes said it lacks. */
  labels: string[];
}

/** A page of them. */
export interface RolloutPage {
  total: number;
  page: number;
  pages: number;
  rollouts: ListedRollout[];
  /** What can be asked for, by the name of the filter, over all rollouts. */
  facets: Record<string, { value: string; count: number }[]>;
}

/** One of them, whole. */
export interface ShownRollout extends ListedRollout {
  facts: { name: string; value: string }[];
  /** By hashes: its batch, adapter or router, and its seed. */
  madeFrom: { name: string; value: string }[];
  messages: ReportedMessage[];
  /** Messages that the analyst points at, and why: first where a failure begins. */
  cited: { message: number; says: string }[];
  /** Other attempts at the same task, of the same batch first. */
  others: { id: string; name: string }[];
}
