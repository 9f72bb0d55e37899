/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import { LAST_STAGE } from '../../domain/work';
import { type Waiting, waitingText } from '../../domain/approval';
import { stages } from '../../domain/campaign';
import { causesText } from '../../domain/rollout';
import { countsOf } from '../../domain/statistics';
import type { CampaignProgress, StepStatus } from '../../workflows/messages';
import type { ActivitySnapshot, Snapshot } from './snapshot';

const waitsFor = (campaign: string, waiting: Waiting | undefined): string =>
  waiting ? waitingText({ waiting, campaign }) : '';

/** Returns a campaign's status in one or two words. */
export function stateOf(o: Pick<Snapshot, 'status' | 'isCancelling' | 'asOf' | 'stage'>): string {
  const { status, isCancelling, asOf, stage } = o;
  if (status === 'COMPLETED' && stage && stage !== LAST_STAGE) return `completed, stopped after ${stage}`;
  if (status !== 'RUNNING') return status.toLowerCase().replaceAll('_', ' ');
  return `${asOf === undefined ? '' : 'was '}${isCancelling ? 'cancelling' : 'running'}`;
}

/** Why rollouts failed, but those of children, which the report counts. */
export function notesOf({ progress }: Snapshot): string[] {
  const { broken, causes } = progress?.rollouts ?? { broken: 0 };
  return causes ? [`${broken} ${broken === 1 ? 'rollout' : 'rollouts'} failed: ${causesText(causes, broken)}`] : [];
}

/** One text each; those that say the same are counted. */
const activityTexts = (activities: readonly ActivitySnapshot[], now: number): string[] =>
  [...countsOf(activities.map((one) => activityText(one, now)))].map(([text, count]) =>
    count > 1 ? `${count} times: ${text}` : text,
  );

/** `selfTest` as `self test`. */
const inWords = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function activityText(activity: ActivitySnapshot, now: number): string {
  const { type, state, queue, attempt, nextAttemptAt = 0, lastFailure } = activity;
  const reason = lastFailure?.replace(/\s+/g, ' ').slice(0, 120);
  const parts = progressParts(activity);
  const isDelayed = state === 'scheduled' && nextAttemptAt > now;
  if (state !== 'scheduled' && parts.length === 0) parts.push(inWords(type));
  if (state === 'scheduled' && !isDelayed) parts.push(`waits for a worker${queue ? ` of ${queue}` : ''}`);
  if (state === 'cancelling') parts.push('stopping');
  const delay = isDelayed ? ` in ${Math.ceil((nextAttemptAt - now) / 1000)} s` : '';
  if (attempt > 1) parts.push(`attempt ${attempt}${delay}${reason ? ` after: ${reason}` : ''}`);
  return joined(parts);
}

function progressParts({ heartbeat, state }: ActivitySnapshot): string[] {
  if (!heartbeat) return [];
  const runs = state !== 'scheduled';
  const parts: (string | false | undefined)[] = [];
  if (heartbeat.kind === 'train') {
    const { step, steps, continues, reward, rollouts, update, waitsFor } = heartbeat;
    if (continues) parts.push(`continues at step ${step}${steps === undefined ? '' : ` of ${steps}`}`);
    else if (step !== undefined) parts.push(steps === undefined ? `step ${step}` : `step ${step}/${steps}`);
    parts.push(reward !== undefined && `reward ${reward.toFixed(2)}`);
    // An update begins once all rollouts are there.
    if (runs && update) parts.push(`update ${update.done}/${update.total}`);
    else parts.push(runs && rollouts && `rollouts ${rollouts.done}/${rollouts.total}`);
    parts.push(runs && waitsFor && `waits for ${waitsFor}`);
  } else {
    const { title, done, total } = heartbeat;
    // The total is 0 until the work has started.
    parts.push(total > 0 ? `${title} ${done}/${total}` : title);
    if (heartbeat.broken) parts.push(`${heartbeat.broken} failed`);
  }
  return parts.flatMap((part) => part || []);
}

/** Separates the parts of a line. */
export const BETWEEN = ' · ';
const joined = (parts: string[]): string => parts.filter(Boolean).join(BETWEEN);

export interface TreeLine {
  /** Identifies the line: a stage, or a child's kind and name. */
  key: string;
  depth: number;
  status: StepStatus;
  label: string;
  /** Result or current work; changes while the step runs. */
  detail: string;
}

const stageLine = (name: string, status: StepStatus, parts: string[]): TreeLine => ({
  key: name,
  depth: 0,
  status,
  label: name,
  detail: joined(parts),
});

/** Lines of the tree: stages, and under `capabilities` the children with their phase and what their activities do or wait for. */
export function treeLines(snapshot: Snapshot, clock: number): TreeLine[] {
  const now = snapshot.asOf ?? clock;
  const { name: owner, status, activities, progress } = snapshot;
  // Activities of the campaign itself belong to the stage that runs now.
  const own = activityTexts(activities, now);
  const known = progressOf(snapshot);
  const lines = known.stages.flatMap(({ name, status, detail }) => {
    const waits = name === 'selection' ? waitsFor(owner, progress?.waiting) : '';
    const line = stageLine(name, status, status === 'running' ? [waits, detail, ...own] : [detail]);
    if (name !== 'capabilities') return [line];
    return [line, ...known.children.map((child) => childLine(snapshot, child, now))];
  });
  if (status !== 'RUNNING') return lines.map((line) => ended(line, status));
  if (own.length === 0 || known.stages.some((stage) => stage.status === 'running')) return lines;
  // Activities before the first stage and after the last one have a line of their own.
  return activities.some(({ type }) => type === 'writeReport')
    ? [...lines, stageLine('report', 'running', own)]
    : [stageLine('preparation', 'running', own), ...lines];
}

/** Replaces the status of steps that were running at the last answer of a campaign that has ended. */
function ended(line: TreeLine, campaign: string): TreeLine {
  if (line.status !== 'running') return line;
  if (campaign === 'COMPLETED') return { ...line, status: 'completed' };
  const status = campaign === 'CANCELLED' ? 'cancelled' : 'failed';
  return { ...line, status, detail: joined([line.detail, 'not finished']) };
}

function childLine(snapshot: Snapshot, child: CampaignProgress['children'][number], now: number): TreeLine {
  const { workflowId, kind, name, status } = child;
  const { progress: seen, activities = [] } = snapshot.children.find((one) => one.workflowId === workflowId) ?? {};
  const reported = activityTexts(activities, now);
  const progress = status === 'running' ? seen : undefined;
  const round = progress && ['synthesize', 'calibrate'].includes(progress.phase) ? ` round ${progress.round}` : '';
  // Heartbeats are newer than the workflow's progress. Their prefix repeats the label of the line and is removed.
  const details = reported.length > 0 ? reported : [progress?.detail ?? child.detail];
  const does = [progress ? progress.phase + round : '', ...details.map((text) => text.replace(`${name}: `, ''))];
  const waits = waitsFor(snapshot.name, progress?.waiting);
  return {
    key: `${kind}/${name}`,
    depth: 1,
    status,
    label: kind === 'arm' ? `${name} (baseline)` : name,
    detail: joined([...(waits ? [waits] : does), progress?.calibration ? `calibration ${progress.calibration}` : '']),
  };
}

/** The campaign's answer to the progress query; without one, what the server knows. */
function progressOf({ progress, stage, children }: Snapshot): Pick<CampaignProgress, 'stages' | 'children'> {
  if (progress) return progress;
  const reached = stage === undefined ? -1 : stages.indexOf(stage);
  const statusAt = (n: number): StepStatus => (n < reached ? 'completed' : n === reached ? 'running' : 'waiting');
  return {
    stages: stages.map((name, n) => ({ name, status: statusAt(n), detail: '' })),
    children: children.map((child) => ({ ...child, status: 'running', detail: '' })),
  };
}
