/** Types of the answers of `campaign view` to the page (web/src). */
import type { Figure } from '../domain/artifacts';
import type { ToolSchema } from '../domain/messages';
import type { ApprovalView, LearnerCurves, ReportedMessage } from '../report/capability-model';
import type { Report } from '../report/model';

/** The campaigns of a home. */
export interface HomePage {
  kind: 'home';
  title: string;
  campaigns: ListedCampaign[];
}

export interface ListedCampaign {
  name: string;
  /** `running`, `completed`, ..., and what it waits for. */
  state: string;
  /** Milliseconds of the last change. Undefined if none is known. */
  changed: number | undefined;
  /** Success rates on the test tasks. */
  base: Figure | undefined;
  shipped: { name: string; successRate: Figure | undefined } | undefined;
}

/** The page of a campaign; report.html holds the report alone. */
export interface CampaignPage {
  kind: 'campaign';
  title: string;
  report?: Report;
  /** All conversations can be asked for. */
  served?: true;
  /** The campaign runs: the page asks again. */
  isLive?: boolean;
  live?: Live;
  /** Pending approvals. */
  approvals?: ApprovalView[];
  /** Addresses in Temporal's UI, by workflow. */
  links?: Record<string, string>;
}

/** The state of a campaign. */
export interface Live {
  /** `running`, `completed`, ... */
  state: string;
  tree: readonly { depth: number; status: string; label: string; detail: string }[];
  notes: readonly string[];
  curves: Curves;
  /** Payments for language models. */
  spent: readonly { dollars?: number | undefined }[];
}

export interface TrainingCurve {
  /** The capability or arm. */
  name: string;
  curves: LearnerCurves;
  /** Held-out mean reward by step, with its interval on the page of a report. */
  heldOut: { step: number; value: number; low?: number | undefined; high?: number | undefined }[];
}

/** The curves of the live page. */
export interface Curves {
  trainings: TrainingCurve[];
  /** Without a finished batch there are none. */
  rollouts?: { scored: number; broken: number };
}

/** A rollout in a list. */
export interface ListedRollout {
  /** Its key. */
  id: string;
  /** The purpose of its batch, and the arm, capability or training that it belongs to. */
  purpose: string;
  of: string;
  task: string;
  attempt: number;
  /** `success`, `failed` or `broken`. */
  outcome: string;
  /** Absent of a broken one. */
  reward?: number;
  /** The stop reason; of a broken one the type of its error. */
  stop: string;
  steps: number;
  branch?: string;
  /** The capabilities that passes label as lacking. */
  labels: string[];
  /** The beginning of the first message after the system prompt. */
  snippet: string;
}

/** A page of them. */
export interface RolloutPage {
  total: number;
  page: number;
  pages: number;
  rollouts: ListedRollout[];
  /** The values of each filter, over all rollouts. */
  facets: Record<string, { value: string; count: number }[]>;
}

/** A reference action and the call that made it, or an extra call, which may be a look-up. */
export interface ComparedAction {
  state: 'made' | 'missing' | 'wrong arguments' | 'extra';
  expected?: string;
  made?: string;
}

/** One rollout, whole. */
export interface ShownRollout extends ListedRollout {
  facts: (readonly [name: string, value: string])[];
  messages: ReportedMessage[];
  tools: ToolSchema[];
  /** Messages that the analyst cites, and why: first where a failure begins. */
  cited: { message: number; says: string }[];
  /** The reference actions of the task, where the target names them. */
  reference?: ComparedAction[];
  /** Other attempts at the same task, of the same batch first. */
  others: { id: string; name: string }[];
  /** The neighbours in the list of the same filters. */
  previous?: string;
  next?: string;
}
