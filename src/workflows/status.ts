/**
 * What a campaign and its children show of themselves: progress query, current details, search attributes, memo. Temporal's UI renders details as
 * Markdown: reasons quote environments, servers and models, and are escaped.
 */
import { CancelledFailure, defineSearchAttributeKey } from '@temporalio/common';
import {
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { type Waiting, waitingText } from '../domain/approval';
import { type Campaign, type Stage, stages } from '../domain/campaign';
import type { CapabilityResult } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import { causesOf, causesText, type RolloutSummary } from '../domain/rollout';
import { Approvals } from './approval';
import { isCancelled, watchSteps } from './failures';
import {
  type CampaignProgress,
  CHILD_NEEDS,
  type ChildProgress,
  type Need,
  queryNames,
  searchAttributeNames,
  type StepStatus,
  type Trouble,
  VIEW_PORT,
} from './messages';

const stageAttribute = defineSearchAttributeKey(searchAttributeNames.stage, 'KEYWORD');
const attentionAttribute = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
const outcomeAttribute = defineSearchAttributeKey(searchAttributeNames.outcome, 'KEYWORD');
const childNeedsSignal = defineSignal<[string, Need?]>(CHILD_NEEDS);

/** What any workflow of a campaign shows: it hears of what waits for approval and of all its steps. */
abstract class Status<Progress extends Pick<ChildProgress, 'waiting' | 'troubles'>> {
  approvals!: Approvals;
  private readonly troubles = new Map<object, Trouble>();
  private needed: string | null = null;

  constructor(protected readonly progress: Progress) {}

  /** Called once all else is made: what was sent before the workflow's first task is heard at once, and shown. */
  protected listen(): void {
    const { progress } = this;
    setHandler(defineQuery<Progress>(queryNames.progress), () => progress);
    this.approvals = new Approvals((waiting) => {
      if (waiting) progress.waiting = waiting;
      else delete progress.waiting;
      return this.show();
    });
    watchSteps({
      onTrouble: (step, trouble) => {
        if (trouble) this.troubles.set(step, trouble);
        else this.troubles.delete(step);
        void this.show();
      },
    });
  }

  protected abstract show(): void | Promise<void>;

  /** The oldest of what its steps, its approval and `others` need a person for, which Temporal shows from now on. */
  protected need(campaign: string, others: Iterable<Need> = []): Need | undefined {
    const { progress } = this;
    progress.troubles = [...this.troubles.values()];
    const own = progress.troubles.flatMap(({ needsPerson, type, since, title, reason }) =>
      needsPerson ? [{ what: type, since, text: `${title}: ${reason}` }] : [],
    );
    const approval = progress.waiting ? [approvalNeed(progress.waiting, campaign)] : [];
    const [oldest] = [...own, ...approval, ...others].sort((a, b) => a.since - b.since);
    const what = oldest?.what ?? null;
    if (what !== this.needed) upsertSearchAttributes([{ key: attentionAttribute, value: what }]);
    this.needed = what;
    return oldest;
  }
}

export class CampaignStatus extends Status<CampaignProgress> {
  readonly stageSeconds: Partial<Record<Stage, number>> = {};
  private verdict = '';
  /** By workflow id. */
  private readonly needs = new Map<string, Need>();

  constructor({ name, seed }: Campaign) {
    super({
      campaign: name,
      seed,
      stages: stages.map((stage) => ({ name: stage, status: 'waiting', detail: '' })),
      children: [],
      rollouts: { scored: 0, broken: 0 },
    });
    this.listen();
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
      this.setStage(name, isCancelled(error) ? 'cancelled' : 'failed');
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

  protected override show(): void {
    const { stages: all, children, rollouts, campaign } = this.progress;
    const need = this.need(campaign, this.needs.values());
    if (need) this.progress.need = need;
    else delete this.progress.need;
    const line = (one: { name: string; status: string; detail: string }) =>
      `- ${escapeMarkdown(`${one.name}: ${one.status}${one.detail ? ` (${one.detail})` : ''}`)}`;
    // A list of their own: within the list of the stages Temporal's UI puts them into whichever stage stands before them.
    const below = children.length > 0 ? ['', '**Capabilities and arms**', '', ...children.map(line)] : [];
    const counts = `${rollouts.scored} rollouts scored, ${rollouts.broken} broken${children.length > 0 ? ' (children not counted)' : ''}`;
    const broke = rollouts.causes ? ['', escapeMarkdown(causesText(rollouts.causes, rollouts.broken))] : [];
    const head = [
      ...(this.verdict ? [escapeMarkdown(this.verdict), ''] : []),
      ...(need ? [`**${escapeMarkdown(needText(need))}**`, ''] : []),
    ];
    const page = `All of it, with its conversations: [the campaign's page](http://127.0.0.1:${VIEW_PORT}) while \`campaign view ${campaign}\` runs.`;
    setCurrentDetails([...head, ...all.map(line), ...below, '', counts, ...broke, '', page].join('\n'));
  }
}

export class ChildStatus extends Status<ChildProgress> {
  /** What it has trained so far: that is spent, whatever becomes of it. */
  work?: CapabilityResult['unvalidated'];
  /** What its campaign has heard. */
  private told: Need | undefined;

  constructor(name: string) {
    super({ name, phase: 'synthesize', round: 0, detail: '' });
    this.listen();
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
  protected override async show(): Promise<void> {
    const { name, phase, detail, calibration } = this.progress;
    const need = this.need(workflowInfo().parent?.workflowId ?? '');
    const now = `${phase}${detail ? ` (${detail})` : ''}`;
    const lines = [`**${escapeMarkdown(name)}**: ${escapeMarkdown(now)}`];
    if (calibration) lines.push(`Success in calibration: ${escapeMarkdown(calibration)}`);
    setCurrentDetails([...lines, ...(need ? [`**${escapeMarkdown(needText(need))}**`] : [])].join('\n\n'));
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

/** How campaigns and their children end. A capability without an accepted environment is `not_trained`. */
type Outcome = 'completed' | 'failed' | 'cancelled' | 'not_trained';

/** Runs a workflow, and shows its outcome; what has ended needs nobody. */
export async function withOutcome<R extends { status: string }>(run: () => Promise<R>): Promise<R> {
  const show = (outcome: Outcome) =>
    upsertSearchAttributes([
      { key: outcomeAttribute, value: outcome },
      { key: attentionAttribute, value: null },
    ]);
  try {
    const result = await run();
    show(result.status.startsWith('not_') ? 'not_trained' : 'completed');
    return result;
  } catch (error) {
    const cancelled = isCancelled(error);
    show(cancelled ? 'cancelled' : 'failed');
    throw cancelled && !isCancellation(error) ? new CancelledFailure('cancelled') : error;
  }
}

/** By the workflow's clock: what is shown in Temporal's UI does not count on. */
export const sinceText = ({ since }: { since: number }): string =>
  `since ${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** What waits for approval says so itself. */
const needText = (need: Need): string =>
  need.what === APPROVAL ? need.text : `needs attention, ${need.what}, ${sinceText(need)}: ${need.text}`;

const APPROVAL = 'approval';

const approvalNeed = (waiting: Waiting, campaign: string): Need => {
  const { since } = waiting;
  return { what: APPROVAL, since, text: waitingText({ waiting, campaign, since: sinceText(waiting) }) };
};
