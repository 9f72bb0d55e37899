/** The progress of a campaign and its children: a query, search attributes, and current details, which Temporal's UI renders as Markdown. */
import { type ApplicationFailure, CancelledFailure } from '@temporalio/common';
import {
  defineQuery,
  isCancellation,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { type Waiting, waitingText } from '../domain/approval';
import { type Campaign, type Stage, stages } from '../domain/campaign';
import type { CampaignChild, CampaignOutcome, ChildResult, TrainedWork } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import { causesOf, causesText, type RolloutSummary } from '../domain/rollout';
import { Approvals } from './approval';
import { childFailure, isCancelled, toFailureReason } from './failures';
import { type CampaignProgress, type ChildProgress, queryNames, searchAttributes, type StepStatus } from './messages';

const progressQuery = defineQuery<CampaignProgress | ChildProgress>(queryNames.progress);
const description = 'Stages, running steps and what waits for approval';

export class CampaignStatus {
  readonly approvals: Approvals;
  readonly stageSeconds: Partial<Record<Stage, number>> = {};
  private readonly progress: CampaignProgress;

  constructor({ name, seed }: Campaign) {
    this.progress = {
      campaign: name,
      seed,
      stages: stages.map((stage) => ({ name: stage, status: 'waiting', detail: '' })),
      children: [],
      rollouts: { scored: 0, broken: 0 },
    };
    setHandler(progressQuery, () => this.progress, { description });
    this.approvals = new Approvals(this.progress, () => this.show());
  }

  async stage<T>(name: Stage, run: () => Promise<T>): Promise<T> {
    const started = Date.now();
    this.setStage(name, 'running', '');
    upsertSearchAttributes([{ key: searchAttributes.stage, value: name }]);
    try {
      const result = await run();
      this.setStage(name, 'completed');
      return result;
    } catch (error) {
      this.setStage(name, isCancelled(error) ? 'cancelled' : 'failed');
      throw error;
    } finally {
      this.stageSeconds[name] = (Date.now() - started) / 1000;
    }
  }

  detail(name: Stage, detail: string): void {
    this.setStage(name, 'running', detail);
  }

  child(child: CampaignChild, status: StepStatus, detail = ''): void {
    const { children } = this.progress;
    const known = children.find(({ workflowId }) => workflowId === child.workflowId);
    if (known) Object.assign(known, { status, detail });
    else children.push({ ...child, status, detail });
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

  private setStage(name: Stage, status: StepStatus, detail?: string): void {
    const stage = this.progress.stages.find((s) => s.name === name);
    if (stage) Object.assign(stage, { status, ...(detail !== undefined && { detail }) });
    this.show();
  }

  private show(): void {
    const { campaign, stages: all, children, rollouts, waiting } = this.progress;
    const line = (one: { name: string; status: string; detail: string }) =>
      `- ${escapeMarkdown(`${one.name}: ${one.status}${one.detail ? ` (${one.detail})` : ''}`)}`;
    const below = children.length > 0 ? ['', '**Capabilities and baselines**', '', ...children.map(line)] : [];
    const broken = rollouts.causes ? ` (${escapeMarkdown(causesText(rollouts.causes, rollouts.broken))})` : '';
    const counts = `${rollouts.scored} rollouts scored, ${rollouts.broken} failed${broken}`;
    const page = `\`campaign view ${campaign}\` shows the conversations.`;
    setCurrentDetails(
      [...waitingLines(waiting, campaign), ...all.map(line), ...below, '', counts, '', page].join('\n'),
    );
  }
}

export class ChildStatus {
  readonly approvals: Approvals;
  /** Counts even if the child fails after it. */
  work?: TrainedWork;
  private readonly progress: ChildProgress;

  constructor(name: string) {
    this.progress = { name, phase: 'synthesize', round: 0, detail: '' };
    setHandler(progressQuery, () => this.progress, { description });
    this.approvals = new Approvals(this.progress, () => this.show());
  }

  set(phase: ChildProgress['phase'], detail: string, round = this.progress.round): void {
    if (round !== this.progress.round) delete this.progress.calibration;
    Object.assign(this.progress, { phase, detail, round });
    this.show();
  }

  calibrated(text: string): void {
    const { calibration } = this.progress;
    this.progress.calibration = calibration ? `${calibration}, ${text}` : text;
    this.show();
  }

  private show(): void {
    const { name, phase, detail, calibration, waiting } = this.progress;
    const now = escapeMarkdown(`${name}: ${phase}${detail ? ` (${detail})` : ''}`);
    const success = calibration ? ['', `Success in calibration: ${escapeMarkdown(calibration)}`] : [];
    const campaign = workflowInfo().parent?.workflowId ?? '';
    setCurrentDetails([...waitingLines(waiting, campaign), now, ...success].join('\n'));
  }

  /** Returns the failure that the child throws: its result so far, with the reason. */
  failure(result: ChildResult, error: unknown): ApplicationFailure {
    const reason = toFailureReason(error);
    this.set('failed', reason);
    return childFailure({ ...result, reason, ...(this.work && { work: this.work }) }, error);
  }
}

const waitingLines = (waiting: Waiting | undefined, campaign: string): string[] =>
  waiting ? [`**${escapeMarkdown(waitingText({ waiting, campaign }))}**`, ''] : [];

export const percent = (x: number): string => `${(100 * x).toFixed(0)}%`;

export async function withOutcome<R extends { status: CampaignOutcome }>(run: () => Promise<R>): Promise<R> {
  const show = (outcome: CampaignOutcome) =>
    upsertSearchAttributes([{ key: searchAttributes.outcome, value: outcome }]);
  try {
    const result = await run();
    show(result.status);
    return result;
  } catch (error) {
    const cancelled = isCancelled(error);
    show(cancelled ? 'cancelled' : 'failed');
    throw cancelled && !isCancellation(error) ? new CancelledFailure('cancelled') : error;
  }
}
