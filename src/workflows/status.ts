/**
 * The progress of a campaign and its children, in the progress query, the current details and the search attributes. Temporal's UI renders details as
 * Markdown, so texts are escaped: reasons quote environments, servers and models.
 */
import { CancelledFailure, defineSearchAttributeKey } from '@temporalio/common';
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
import type { CampaignChild, CampaignOutcome, TrainedWork } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import { causesOf, causesText, type RolloutSummary } from '../domain/rollout';
import { Approvals } from './approval';
import { isCancelled } from './failures';
import {
  type CampaignProgress,
  type ChildProgress,
  queryNames,
  searchAttributeNames,
  type StepStatus,
} from './messages';

const stageAttribute = defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD');
const attentionAttribute = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
const outcomeAttribute = defineSearchAttributeKey(searchAttributeNames.outcome, 'KEYWORD');

/** The progress that every workflow shows, and the subject that waits for approval. */
abstract class Status<Progress extends Pick<ChildProgress, 'waiting'>> {
  approvals!: Approvals;

  constructor(protected readonly progress: Progress) {}

  /** Registers the handlers. Called last in a constructor, since messages that came before the first workflow task are handled at once. */
  protected listen(): void {
    const { progress } = this;
    setHandler(defineQuery<Progress>(queryNames.progress), () => progress, {
      description: 'Stages, running steps and what waits for approval',
    });
    this.approvals = new Approvals((waiting) => {
      if (waiting) progress.waiting = waiting;
      else delete progress.waiting;
      upsertSearchAttributes([{ key: attentionAttribute, value: waiting ? 'approval' : null }]);
      this.show();
    });
  }

  protected abstract show(): void;

  protected waitingLine(campaign: string): string[] {
    const { waiting } = this.progress;
    return waiting ? [`**${escapeMarkdown(waitingText({ waiting, campaign, since: sinceText(waiting) }))}**`] : [];
  }
}

export class CampaignStatus extends Status<CampaignProgress> {
  readonly stageSeconds: Partial<Record<Stage, number>> = {};
  private verdict = '';

  constructor({ name, seed }: Campaign) {
    super({
      campaign: name,
      seed,
      stages: stages.map((stage) => ({ name: stage, status: 'waiting', detail: '' })),
      children: [],
      rollouts: { scored: 0, broken: 0 },
    });
    this.listen();
  }

  /** Runs a stage, shows its status and records its duration. */
  async stage<T>(name: Stage, run: () => Promise<T>): Promise<T> {
    const started = Date.now();
    this.setStage(name, 'running', '');
    upsertSearchAttributes([{ key: stageAttribute, value: name }]);
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

  /** Shows the verdict of the report. */
  ended(verdict: string): void {
    this.verdict = verdict;
    this.show();
  }

  private setStage(name: Stage, status: StepStatus, detail?: string): void {
    const stage = this.progress.stages.find((s) => s.name === name);
    if (stage) Object.assign(stage, { status, ...(detail !== undefined && { detail }) });
    this.show();
  }

  protected override show(): void {
    const { stages: all, children, rollouts, campaign } = this.progress;
    const line = (one: { name: string; status: string; detail: string }) =>
      `- ${escapeMarkdown(`${one.name}: ${one.status}${one.detail ? ` (${one.detail})` : ''}`)}`;
    // Children need a list of their own: in the list of stages, Temporal's UI would nest them under the stage above them.
    const below = children.length > 0 ? ['', '**Capabilities and arms**', '', ...children.map(line)] : [];
    const counts = `${rollouts.scored} rollouts scored, ${rollouts.broken} broken${children.length > 0 ? ' (children not counted)' : ''}`;
    const broke = rollouts.causes ? ['', escapeMarkdown(causesText(rollouts.causes, rollouts.broken))] : [];
    const head = [...(this.verdict ? [escapeMarkdown(this.verdict)] : []), ...this.waitingLine(campaign)];
    const page = `Everything with its conversations: \`campaign view ${campaign}\``;
    setCurrentDetails(
      [...head.flatMap((text) => [text, '']), ...all.map(line), ...below, '', counts, ...broke, '', page].join('\n'),
    );
  }
}

export class ChildStatus extends Status<ChildProgress> {
  /** Work that is spent, even if the child fails after it. */
  work?: TrainedWork;

  constructor(name: string) {
    super({ name, phase: 'synthesize', round: 0, detail: '' });
    this.listen();
  }

  set(phase: ChildProgress['phase'], detail: string, round = this.progress.round): void {
    if (round !== this.progress.round) delete this.progress.calibration;
    Object.assign(this.progress, { phase, detail, round });
    this.show();
  }

  /** Adds the result of a calibration of this round. */
  calibrated(text: string): void {
    const { calibration } = this.progress;
    this.progress.calibration = calibration ? `${calibration}, ${text}` : text;
    this.show();
  }

  protected override show(): void {
    const { name, phase, detail, calibration } = this.progress;
    const now = `${phase}${detail ? ` (${detail})` : ''}`;
    const lines = [`**${escapeMarkdown(name)}**: ${escapeMarkdown(now)}`];
    if (calibration) lines.push(`Success in calibration: ${escapeMarkdown(calibration)}`);
    setCurrentDetails([...lines, ...this.waitingLine(workflowInfo().parent?.workflowId ?? '')].join('\n\n'));
  }
}

export const percent = (x: number): string => `${(100 * x).toFixed(0)}%`;

/** Runs a workflow, and sets the search attribute of its outcome. */
export async function withOutcome<R extends { status: CampaignOutcome }>(run: () => Promise<R>): Promise<R> {
  const show = (outcome: CampaignOutcome) => upsertSearchAttributes([{ key: outcomeAttribute, value: outcome }]);
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

/** Returns a point in time, since a duration shown in Temporal's UI would not be updated. */
const sinceText = ({ since }: Waiting): string =>
  `since ${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
