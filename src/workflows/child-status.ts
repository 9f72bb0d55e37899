/** What a child workflow shows of itself: the progress query, current details and search attributes; and its pause gate. */
import {
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { Approvals } from './approval';
import { approvalNeed, Attention, needText } from './attention';
import { CHILD_NEEDS, queryNames, type ChildProgress, type Need } from './messages';
import { PauseGate } from './pause';

const childProgressQuery = defineQuery<ChildProgress>(queryNames.progress);
export const childNeedsSignal = defineSignal<[string, Need?]>(CHILD_NEEDS);

export class ChildStatus {
  private readonly progress: ChildProgress;
  readonly gate: PauseGate;
  readonly approvals: Approvals;
  private readonly attention = new Attention();
  /** What its campaign has heard. */
  private told: Need | undefined;

  constructor(name: string) {
    this.progress = { name, phase: 'synthesize', round: 0, detail: '', paused: false };
    setHandler(childProgressQuery, () => this.progress);
    this.gate = new PauseGate((paused) => {
      this.progress.paused = paused;
      void this.show();
    });
    this.attention.watch(this.gate, () => void this.show());
    this.approvals = new Approvals((waiting) => {
      if (waiting) this.progress.waiting = waiting;
      else delete this.progress.waiting;
      return this.show();
    });
  }

  set(phase: ChildProgress['phase'], detail: string, round = this.progress.round): void {
    if (round !== this.progress.round) delete this.progress.calibration;
    Object.assign(this.progress, { phase, detail, round });
    void this.show();
  }

  /** One more calibration of this round. */
  calibrated(text: string): void {
    const { calibration } = this.progress;
    this.progress.calibration = calibration ? `${calibration}, ${text}` : text;
    void this.show();
  }

  /** Resolves when the campaign has heard of what is needed: a workflow does not end with a signal under way. */
  private async show(): Promise<void> {
    const { name, phase, detail, paused, calibration, waiting } = this.progress;
    this.progress.troubles = this.attention.troubles;
    const campaign = workflowInfo().parent?.workflowId ?? '';
    const need = this.attention.show([waiting && approvalNeed(waiting, campaign)]);
    const lines = [`**${name}**: ${paused ? 'paused, ' : ''}${phase}${detail ? ` (${detail})` : ''}`];
    if (calibration) lines.push(`Success in calibration: ${calibration}`);
    setCurrentDetails([...lines, ...(need ? [`**${needText(need)}**`] : [])].join('\n\n'));
    if (need?.text === this.told?.text) return;
    this.told = need;
    await tellParent(need);
  }
}

export const percent = (x: number): string => `${(100 * x).toFixed(0)}%`;

async function tellParent(need: Need | undefined): Promise<void> {
  const { workflowId, parent } = workflowInfo();
  if (!parent) return;
  try {
    await getExternalWorkflowHandle(parent.workflowId, parent.runId).signal(childNeedsSignal, workflowId, need);
  } catch {
    // The campaign is closed.
  }
}
