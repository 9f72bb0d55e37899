/** What a campaign shows of itself: progress query, current details, search attributes, memo; pause and resume reach its children. */
import {
  defineQuery,
  getExternalWorkflowHandle,
  setCurrentDetails,
  setHandler,
  upsertMemo,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { type Campaign, type Stage, stages } from '../domain/campaign';
import { causesOf, causesText, type RolloutSummary } from '../domain/rollout';
import { Approvals } from './approval';
import { approvalNeed, Attention, needText } from './attention';
import { childNeedsSignal } from './child-status';
import {
  queryNames,
  searchAttributeNames,
  type CampaignProgress,
  type Memo,
  type Need,
  type StepStatus,
} from './messages';
import { PauseGate, pauseSignal, resumeSignal } from './pause';

const campaignProgressQuery = defineQuery<CampaignProgress>(queryNames.progress);
const stageAttribute = defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD');

export class CampaignStatus {
  private readonly progress: CampaignProgress;
  readonly gate: PauseGate;
  readonly approvals: Approvals;
  readonly stageSeconds: Partial<Record<Stage, number>> = {};
  private readonly attention = new Attention();
  private verdict = '';
  /** By workflow id. */
  private readonly needs = new Map<string, Need>();

  constructor(campaign: Campaign) {
    this.progress = {
      campaign: campaign.name,
      seed: campaign.seed,
      paused: false,
      stages: stages.map((name) => ({ name, status: 'waiting', detail: '' })),
      children: [],
      rollouts: { scored: 0, broken: 0 },
    };
    setHandler(campaignProgressQuery, () => this.progress);
    this.gate = new PauseGate((paused) => {
      this.progress.paused = paused;
      // Readable while no worker answers.
      upsertMemo({ paused } satisfies Memo);
      for (const child of this.progress.children) {
        if (child.status === 'running') void signalChild(child.workflowId, paused);
      }
      this.show();
    });
    this.approvals = new Approvals((waiting) => {
      if (waiting) this.progress.waiting = waiting;
      else delete this.progress.waiting;
      this.show();
    });
    this.attention.watch(this.gate, () => this.show());
    setHandler(childNeedsSignal, (workflowId, need) => {
      const child = this.progress.children.find((one) => one.workflowId === workflowId);
      if (child?.status !== 'running') return;
      child.detail = need ? needText(need) : '';
      if (need) this.needs.set(workflowId, { ...need, text: `${child.name}: ${need.text}` });
      else this.needs.delete(workflowId);
      this.show();
    });
  }

  /** Runs a stage, and shows when it begins, what it is about, how it ended and how long it took. */
  async stage<T>(name: Stage, run: () => Promise<T>): Promise<T> {
    const started = Date.now();
    this.setStage(name, 'running', '');
    upsertSearchAttributes([{ key: stageAttribute, value: name }]);
    try {
      const result = await run();
      this.setStage(name, 'done');
      return result;
    } catch (error) {
      this.setStage(name, 'failed');
      throw error;
    } finally {
      this.stageSeconds[name] = (Date.now() - started) / 1000;
    }
  }

  detail(name: Stage, detail: string): void {
    this.setStage(name, 'running', detail);
  }

  child(workflowId: string, kind: 'capability' | 'arm', name: string, status: StepStatus, detail: string): void {
    const { children } = this.progress;
    const known = children.find((child) => child.workflowId === workflowId);
    this.needs.delete(workflowId);
    if (known) Object.assign(known, { status, detail });
    else children.push({ workflowId, kind, name, status, detail });
    // One that begins to run has heard nothing yet.
    if (status === 'running' && this.gate.paused) void signalChild(workflowId, true);
    this.show();
  }

  count(summary: RolloutSummary): RolloutSummary {
    const { rollouts } = this.progress;
    rollouts.scored += summary.scored;
    rollouts.broken += summary.broken;
    if (summary.causes) rollouts.causes = causesOf([...(rollouts.causes ?? []), ...summary.causes]);
    this.show();
    return summary;
  }

  /** `verdict`: what came out. */
  ended(verdict: string): void {
    this.verdict = verdict;
    this.show();
  }

  private setStage(name: Stage, status: StepStatus, detail?: string): void {
    const stage = this.progress.stages.find((s) => s.name === name);
    if (stage) Object.assign(stage, { status, ...(detail !== undefined && { detail }) });
    this.show();
  }

  private show(): void {
    const { stages: all, children, rollouts, paused, waiting, campaign } = this.progress;
    this.progress.troubles = this.attention.troubles;
    const need = this.attention.show([waiting && approvalNeed(waiting, campaign), ...this.needs.values()]);
    if (need) this.progress.need = need;
    else delete this.progress.need;
    const line = (one: { name: string; status: string; detail: string }) =>
      `- ${one.name}: ${one.status}${one.detail ? ` (${one.detail})` : ''}`;
    // A list of their own: within the list of the stages Temporal's UI puts them into whichever stage stands before them.
    const below = children.length > 0 ? ['', '**Capabilities and arms**', '', ...children.map(line)] : [];
    const counts = `${rollouts.scored} rollouts scored, ${rollouts.broken} broken${children.length > 0 ? ' (children not counted)' : ''}`;
    const broke = rollouts.causes ? ['', causesText(rollouts.causes, rollouts.broken)] : [];
    const head = [
      ...(this.verdict ? [this.verdict, ''] : []),
      ...(paused ? ['**paused**', ''] : []),
      ...(need ? [`**${needText(need)}**`, ''] : []),
    ];
    setCurrentDetails([...head, ...all.map(line), ...below, '', counts, ...broke].join('\n'));
  }
}

/** A child that ended meanwhile cannot be signalled, and need not be. */
async function signalChild(workflowId: string, paused: boolean): Promise<void> {
  try {
    await getExternalWorkflowHandle(workflowId).signal(paused ? pauseSignal : resumeSignal);
  } catch {
    // The child is closed.
  }
}
