/** What a child workflow shows of itself: the progress query, current details and search attributes; and its pause gate. */
import {
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { waitingText, type Waiting } from '../domain/approval';
import { Approvals } from './approval';
import { CHILD_WAITS, queryNames, type ChildProgress } from './messages';
import { PauseGate } from './pause';

const childProgressQuery = defineQuery<ChildProgress>(queryNames.progress);
/** The child's workflow id, and what it waits for. */
export const childWaitsSignal = defineSignal<[string, string]>(CHILD_WAITS);

export class ChildStatus {
  private readonly progress: ChildProgress;
  readonly gate: PauseGate;
  readonly approvals: Approvals;

  constructor(name: string) {
    this.progress = { name, phase: 'synthesize', round: 0, detail: '', paused: false };
    setHandler(childProgressQuery, () => this.progress);
    this.gate = new PauseGate((paused) => {
      this.progress.paused = paused;
      this.show();
    });
    this.approvals = new Approvals((waiting) => this.wait(waiting));
  }

  private async wait(waiting: Waiting | undefined): Promise<void> {
    if (waiting) this.progress.waiting = waiting;
    else delete this.progress.waiting;
    this.show();
    await tellParent(this.waits());
  }

  /** What is waited for; empty where nothing is. */
  private waits(): string {
    const { waiting } = this.progress;
    const campaign = workflowInfo().parent?.workflowId ?? '';
    return waiting ? waitingText({ waiting, campaign, since: sinceText(waiting) }) : '';
  }

  set(phase: ChildProgress['phase'], detail: string, round = this.progress.round): void {
    if (round !== this.progress.round) delete this.progress.calibration;
    Object.assign(this.progress, { phase, detail, round });
    this.show();
  }

  /** One more calibration of this round. */
  calibrated(text: string): void {
    const { calibration } = this.progress;
    this.progress.calibration = calibration ? `${calibration}, ${text}` : text;
    this.show();
  }

  private show(): void {
    const { name, phase, detail, paused, calibration } = this.progress;
    const waits = this.waits();
    const lines = [`**${name}**: ${paused ? 'paused, ' : ''}${phase}${detail ? ` (${detail})` : ''}`];
    if (calibration) lines.push(`Success in calibration: ${calibration}`);
    setCurrentDetails([...lines, ...(waits ? [`**${waits}**`] : [])].join('\n\n'));
  }
}

export const percent = (x: number): string => `${(100 * x).toFixed(0)}%`;

/** By the workflow's clock: what is shown in Temporal's UI does not count on. */
export const sinceText = ({ since }: Waiting): string =>
  `since ${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** The campaign shows what its children wait for. Resolves when it has heard: a workflow does not end with a signal under way. */
async function tellParent(waits: string): Promise<void> {
  const { workflowId, parent } = workflowInfo();
  if (!parent) return;
  try {
    await getExternalWorkflowHandle(parent.workflowId, parent.runId).signal(childWaitsSignal, workflowId, waits);
  } catch {
    // The campaign is closed.
  }
}
