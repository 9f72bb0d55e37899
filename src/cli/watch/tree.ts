/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import { queueNameOf, type QueueName } from '../../domain/work';
import { type Waiting, waitingText } from '../../domain/approval';
import { stages } from '../../domain/campaign';
import type { FailureType } from '../../domain/failures';
import { causesText } from '../../domain/rollout';
import { duration } from '../../report/format';
import type { CampaignProgress, StepStatus } from '../../workflows/messages';
import type { ActivitySnapshot, Snapshot } from './snapshot';

const WINDOW_MS = 30_000;

export class Rates {
  private readonly seen = new Map<string, { at: number; count: number }[]>();

  /** Growth of a counter per second; undefined until it was seen growing. A counter that falls begins anew. */
  perSecond(counter: string, count: number, now: number): number | undefined {
    let points = this.seen.get(counter) ?? [];
    const last = points.at(-1);
    if (last && count < last.count) points = [];
    if (count !== last?.count) points.push({ at: now, count });
    // The last point before the window stays: it is where the window's growth begins.
    while (points[1] && points[1].at < now - WINDOW_MS) points.shift();
    this.seen.set(counter, points);
    const [first] = points;
    const grown = first ? count - first.count : 0;
    return first && grown > 0 && now > first.at ? (grown * 1000) / (now - first.at) : undefined;
  }
}

/** `since 20 min`, `since 2 h`, `since 3 days`; empty for what has just begun. */
export function sinceText(ms: number): string {
  const minutes = Math.floor(ms / 300_000) * 5;
  if (minutes < 5) return '';
  if (minutes < 60) return `since ${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `since ${hours} h` : `since ${Math.floor(hours / 24)} days`;
}

const waitsFor = (campaign: string, waiting: Waiting | undefined, now: number): string =>
  waiting ? waitingText({ waiting, campaign, since: sinceText(now - waiting.since) }) : '';

/** How a campaign stands, in a word or two. */
export function stateOf(o: Pick<Snapshot, 'status' | 'isCancelling' | 'asOf' | 'stoppedAfter'>): string {
  const { status, isCancelling, asOf, stoppedAfter } = o;
  if (stoppedAfter) return `completed, stopped after ${stoppedAfter}`;
  if (status !== 'RUNNING') return status.toLowerCase().replaceAll('_', ' ');
  return `${asOf === undefined ? '' : 'was '}${isCancelling ? 'cancelling' : 'running'}`;
}

/** All runs of a campaign in one line of time; undefined where there is one run. */
export function runsText({ earlier = [], ...last }: Snapshot, now: number): string | undefined {
  if (earlier.length === 0) return undefined;
  const runs = [...earlier, { ...last, closedAt: last.closedAt ?? now }].map(
    ({ status, startedAt, closedAt }) => `${stateOf({ status })} ${duration((closedAt - startedAt) / 1000)}`,
  );
  return `${runs.length} runs: ${runs.join(', then ')}`;
}

/** Why rollouts broke, but those of children, which the report counts. */
export function notesOf({ progress }: Snapshot): string[] {
  const { broken, causes } = progress?.rollouts ?? { broken: 0 };
  return causes ? [`${broken} ${broken === 1 ? 'rollout' : 'rollouts'} broke: ${causesText(causes, broken)}`] : [];
}

/** What waits for a worker, by the queue that it is taken from. */
const workers: Record<QueueName, string> = {
  control: 'a control worker',
  rollouts: 'a rollouts worker',
  gpu: 'a gpu slot',
};

const MODEL_AWAY: FailureType = 'LanguageModelUnavailable';
/** A worker that lives heartbeats far more often. */
const QUIET_MS = 60_000;

interface Activities {
  activities: ActivitySnapshot[];
  /** Whose they are: counters of one name belong to it. */
  owner: string;
  rates: Rates;
  now: number;
}

/** One text each; those that say the same are counted. */
function activityTexts({ activities, owner, rates, now }: Activities): string[] {
  const perSecond = (title: string, count: number) => rates.perSecond(`${owner} ${title}`, count, now);
  const counts = new Map<string, number>();
  for (const activity of activities) {
    const text = activityText(activity, now, perSecond);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => (count > 1 ? `${count} times: ${text}` : text));
}

/** `selfTest` as `self test`. */
const inWords = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

type PerSecond = (title: string, count: number) => number | undefined;

function activityText(activity: ActivitySnapshot, now: number, perSecond: PerSecond): string {
  const { type, state, queue, attempt, nextAttemptAt = 0, lastFailure, lastFailureType } = activity;
  const reason = lastFailure && oneLine(lastFailure);
  const parts = progressParts(activity, perSecond);
  if (state === 'scheduled' && attempt > 1 && nextAttemptAt > now) {
    const seconds = `${Math.ceil((nextAttemptAt - now) / 1000)} s`;
    const because = reason ? `: ${reason}` : '';
    // No capacity is no trouble: it says itself when to come back.
    const isAway = lastFailureType === MODEL_AWAY;
    const text = isAway ? `waits for the language model${because}, again in ${seconds}` : '';
    return joined([...parts, text || `attempt ${attempt} in ${seconds}${because}`]);
  }
  if (state === 'scheduled') {
    const name = queue && queueNameOf(queue);
    parts.push(`waits for ${name ? workers[name] : 'a worker'}${queue ? ` (${queue})` : ''}`);
  } else if (parts.length === 0) parts.push(inWords(type));
  if (state === 'cancelling') parts.push('stopping');
  // A heartbeat of the attempt before says nothing about this one.
  const silence = now - (Math.max(activity.heartbeatAt ?? 0, activity.startedAt ?? 0) || now);
  // Whole minutes: silence is not news every second.
  if (state === 'started' && silence > QUIET_MS) parts.push(`silent for ${Math.floor(silence / 60_000)} min`);
  // Why there is another one: it is not about the one that runs.
  if (attempt > 1) parts.push(`attempt ${attempt}${reason ? ` after: ${reason}` : ''}`);
  return joined(parts);
}

/** What is done; while it runs, also how fast. */
function progressParts({ heartbeat, state }: ActivitySnapshot, perSecond: PerSecond): string[] {
  if (!heartbeat) return [];
  const runs = state !== 'scheduled';
  const parts: (string | false | undefined)[] = [];
  if (heartbeat.kind === 'train') {
    const { step, steps, continues, reward, rollouts, update, waitsFor } = heartbeat;
    if (continues) parts.push(`continues at step ${step}${steps === undefined ? '' : ` of ${steps}`}`);
    else if (step !== undefined) parts.push(steps === undefined ? `step ${step}` : `step ${step}/${steps}`);
    // The first takes longer: what starts up is in it.
    const rate = runs && step ? perSecond('step', step) : undefined;
    parts.push(steps !== undefined && step !== undefined && leftText(steps - step, rate));
    parts.push(reward !== undefined && `reward ${reward.toFixed(2)}`);
    // An update begins once all rollouts are there.
    if (runs && update) parts.push(`update ${update.done}/${update.total}`);
    else parts.push(runs && rollouts && `rollouts ${rollouts.done}/${rollouts.total}`);
    parts.push(runs && waitsFor && `waits for ${waitsFor}`);
  } else {
    const { title, done, total } = heartbeat;
    const rate = runs ? perSecond(title, done) : undefined;
    // How many there are is known once the work has begun.
    parts.push(total > 0 ? `${title} ${done}/${total}` : title);
    // Before what gives way where there is little room.
    if (heartbeat.kind === 'rollouts') parts.push(heartbeat.broken > 0 && `${heartbeat.broken} broken`);
    parts.push(rate !== undefined && `${rate.toFixed(1)}/s`, leftText(total - done, rate));
    if (heartbeat.kind !== 'rollouts' && heartbeat.characters)
      parts.push(`${(heartbeat.characters / 1000).toFixed(1)} kB of replies`);
  }
  return parts.flatMap((part) => part || []);
}

/** At the rate of the last half minute. */
const leftText = (left: number, perSecond: number | undefined): string | undefined =>
  perSecond === undefined || left <= 0 ? undefined : `${duration(left / perSecond)} left`;

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 120);
/** Between what is said in one line. */
export const BETWEEN = ' · ';
const joined = (parts: string[]): string => parts.filter(Boolean).join(BETWEEN);

export interface TreeLine {
  /** What the line is about: a stage, or a child's kind and name. */
  key: string;
  depth: number;
  status: StepStatus;
  label: string;
  /** What came out or is being done; changes as it goes on. */
  detail: string;
}

const stageLine = (name: string, status: StepStatus, parts: string[]): TreeLine => ({
  key: name,
  depth: 0,
  status,
  label: name,
  detail: joined(parts),
});

interface Tree {
  snapshot: Snapshot;
  rates: Rates;
  now: number;
}

/** Lines of the tree: stages, and under `capabilities` the children with their phase and what their activities do or wait for. */
export function treeLines({ snapshot, rates, now: clock }: Tree): TreeLine[] {
  const now = snapshot.asOf ?? clock;
  const { name: owner, status, activities, progress } = snapshot;
  // Activities of the campaign itself belong to the stage that runs now.
  const own = activityTexts({ activities, owner, rates, now });
  const known = progressOf(snapshot);
  const lines = known.stages.flatMap(({ name, status, detail }) => {
    const waits = name === 'selection' ? waitsFor(owner, progress?.waiting, now) : '';
    const line = stageLine(name, status, status === 'running' ? [waits, detail, ...own] : [detail]);
    if (name !== 'capabilities') return [line];
    return [line, ...known.children.map((child) => childLine({ snapshot, rates, now }, child))];
  });
  if (status !== 'RUNNING') return lines.map((line) => ended(line, status));
  if (own.length === 0 || known.stages.some((stage) => stage.status === 'running')) return lines;
  // Activities before the first stage and after the last one have a line of their own.
  return activities.some(({ type }) => type === 'writeReport')
    ? [...lines, stageLine('report', 'running', own)]
    : [stageLine('preparation', 'running', own), ...lines];
}

/** In a campaign that has ended nothing runs; what its last answer called running ended with it. */
function ended(line: TreeLine, campaign: string): TreeLine {
  if (line.status !== 'running') return line;
  if (campaign === 'COMPLETED') return { ...line, status: 'completed', detail: 'how it ended is in the report' };
  return { ...line, status: endedAs(campaign), detail: joined([line.detail, 'not finished']) };
}

/** By Temporal's status of an ended campaign. */
const endedAs = (status: string): StepStatus =>
  status === 'COMPLETED' ? 'completed' : status === 'CANCELLED' ? 'cancelled' : 'failed';

function childLine({ snapshot, rates, now }: Tree, child: CampaignProgress['children'][number]): TreeLine {
  const { workflowId, kind, name, status } = child;
  const { progress: seen, activities = [] } = snapshot.children.find((one) => one.workflowId === workflowId) ?? {};
  const reported = activityTexts({ activities, owner: workflowId, rates, now });
  const progress = status === 'running' ? seen : undefined;
  const round = progress && ['synthesize', 'calibrate'].includes(progress.phase) ? ` round ${progress.round}` : '';
  // What its activities report is newer than what the workflow knows of them; and the line says already whose they are.
  const details = reported.length > 0 ? reported : [progress?.detail ?? child.detail];
  const does = [progress ? progress.phase + round : '', ...details.map((text) => text.replace(`${name}: `, ''))];
  const waits = waitsFor(snapshot.name, progress?.waiting, now);
  return {
    key: `${kind}/${name}`,
    depth: 1,
    status,
    label: kind === 'arm' ? `${name} (arm)` : name,
    detail: joined([...(waits ? [waits] : does), progress?.calibration ? `calibration ${progress.calibration}` : '']),
  };
}

/** The campaign's answer to the progress query; what it can't answer now, as the server knows it. */
function progressOf(snapshot: Snapshot): Pick<CampaignProgress, 'stages' | 'children'> {
  const { progress, progressAt, stage, status, children } = snapshot;
  const reported = progress?.children ?? [];
  const others = children.filter(({ workflowId }) => reported.every((child) => child.workflowId !== workflowId));
  const reached = stage === undefined ? -1 : stages.indexOf(stage);
  const last: StepStatus = status === 'RUNNING' ? 'running' : endedAs(status);
  const known = stages.map((name, i): CampaignProgress['stages'][number] => ({
    name,
    status: i < reached ? 'completed' : i === reached ? last : 'waiting',
    detail: progress?.stages.find((one) => one.name === name)?.detail ?? '',
  }));
  return {
    stages: progress && progressAt === undefined ? progress.stages : known,
    children: [...reported, ...others.map((child) => ({ ...child, status: 'running' as const, detail: '' }))],
  };
}
