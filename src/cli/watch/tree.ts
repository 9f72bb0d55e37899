/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import { activityEntry } from '../../domain/activities';
import { type Waiting, waitingText } from '../../domain/approval';
import { stages } from '../../domain/campaign';
import type { FailureType } from '../../domain/failures';
import { causesText } from '../../domain/rollout';
import type { TrainHeartbeat } from '../../domain/work';
import type { CampaignProgress, StepStatus, Trouble } from '../../workflows/messages';
import { stoppedText } from '../temporal';
import { type ActivitySnapshot, inWords, type Snapshot } from './snapshot';

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

/** What a running campaign needs a person for: as its workers tell it, else as the server knows it. What waits for approval has said so in its line. */
export function attentionText({ status, attention, progress, progressAt }: Snapshot, now: number): string {
  if (status !== 'RUNNING' || !attention) return '';
  const need = progressAt === undefined ? progress?.need : undefined;
  if (!need) return `needs attention: ${attention}`;
  if (need.what === 'approval') return '';
  return `${['needs attention', sinceText(now - need.since)].filter(Boolean).join(' ')}: ${need.what}: ${need.text}`;
}

const waitsFor = (campaign: string, waiting: Waiting | undefined, now: number): string =>
  waiting ? waitingText({ waiting, campaign, since: sinceText(now - waiting.since) }) : '';

/** `since 20 min`, `since 2 h`, `since 3 days`; empty for what has just begun. */
export function sinceText(ms: number): string {
  const minutes = Math.floor(ms / 300_000) * 5;
  if (minutes < 5) return '';
  if (minutes < 60) return `since ${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `since ${hours} h` : `since ${Math.floor(hours / 24)} days`;
}

/** How a campaign stands, in a word or two. */
export function stateOf({ status, paused, asOf, stoppedAfter }: Snapshot): string {
  if (stoppedAfter) return stoppedText(stoppedAfter);
  if (status !== 'RUNNING') return status.toLowerCase().replaceAll('_', ' ');
  return `${asOf === undefined ? '' : 'was '}${paused ? 'paused' : 'running'}`;
}

/** Of what rollouts broke; empty where none did. Those of children are counted in the report only. */
export function brokenText({ progress }: Snapshot): string {
  const { broken, causes } = progress?.rollouts ?? { broken: 0 };
  return causes ? `${broken} ${broken === 1 ? 'rollout' : 'rollouts'} broke: ${causesText(causes, broken)}` : '';
}

/** Which kind of worker takes a step, by the beginning of its queue's name. */
const workers: Record<string, string> = {
  control: 'a control worker',
  rollouts: 'a rollouts worker',
  gpu: 'a gpu slot',
};

const MODEL_AWAY: FailureType = 'LanguageModelUnavailable';

/** A worker that lives heartbeats far more often. */
const QUIET_MS = 60_000;

interface Activities {
  activities: ActivitySnapshot[];
  /** What the workflow knows of attempts before these. */
  troubles?: Trouble[] | undefined;
  /** Whose they are: counters of one name belong to it. */
  owner: string;
  rates: Rates;
  now: number;
}

/** One text each; those that say the same are counted. */
export function activityTexts({ activities, troubles = [], owner, rates, now }: Activities): string[] {
  const counts = new Map<string, number>();
  const perSecond = (title: string, count: number) => rates.perSecond(`${owner} ${title}`, count, now);
  const texts = activities.map((activity) => activityText(activity, now, perSecond));
  for (const text of [...texts, ...troubles.flatMap((trouble) => troubleText(trouble, now))])
    counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count > 1 ? `${count} times: ${text}` : text));
}

type PerSecond = (title: string, count: number) => number | undefined;

function activityText(activity: ActivitySnapshot, now: number, perSecond: PerSecond): string {
  const { type, state, queue = '', attempt, nextAttemptAt = 0, lastFailure, lastFailureType } = activity;
  const reason = lastFailure && oneLine(lastFailure);
  const parts = progressParts(activity, perSecond);
  if (state === 'scheduled' && attempt > 1 && nextAttemptAt > now) {
    const seconds = `${Math.ceil((nextAttemptAt - now) / 1000)} s`;
    const because = reason ? `: ${reason}` : '';
    // No capacity is no trouble: it says itself when to come back.
    const isAway = lastFailureType === MODEL_AWAY;
    parts.push(
      isAway
        ? `waits for the language model${because}, again in ${seconds}`
        : `attempt ${attempt} in ${seconds}${because}`,
    );
    return joined(parts);
  }
  const worker = workers[queue.slice(0, queue.indexOf('-'))];
  if (state === 'scheduled') parts.push(`waits for ${worker ? `${worker} (${queue})` : 'a worker'}`);
  else if (parts.length === 0) parts.push(activityEntry(type)?.doing ?? type);
  if (state === 'cancelling') parts.push('stopping');
  // A heartbeat of the attempt before says nothing about this one.
  const silence = now - (Math.max(activity.heartbeatAt ?? 0, activity.startedAt ?? 0) || now);
  // Whole minutes: silence is not news every second.
  if (state === 'started' && silence > QUIET_MS) parts.push(`silent for ${Math.floor(silence / 60_000)} min`);
  // Why there is another one: it is not about the one that runs.
  if (attempt > 1) parts.push(`attempt ${attempt}${reason ? ` after: ${reason}` : ''}`);
  return joined(parts);
}

/** What is outside is told by its activity, whose attempts these are. */
function troubleText({ retry, type, reason, nextAt, attempt }: Trouble, now: number): string[] {
  if (retry === 'outside') return [];
  const seconds = Math.ceil((nextAt - now) / 1000);
  const times = attempt ? `attempt ${attempt.number} of ${attempt.of}` : 'again';
  return [`${times} ${seconds > 0 ? `in ${seconds} s:` : 'after:'} ${oneLine(inWords(type, reason))}`];
}

/** What is done; while it runs, also how fast. */
function progressParts({ heartbeat, state }: ActivitySnapshot, perSecond: PerSecond): string[] {
  if (!heartbeat) return [];
  const runs = state !== 'scheduled';
  if (heartbeat.kind === 'train') return trainParts(heartbeat, runs);
  const { title, done, total } = heartbeat;
  const rate = runs ? perSecond(title, done) : undefined;
  const parts = [`${title} ${done}/${total}`];
  if (rate !== undefined) parts.push(`${rate.toFixed(1)}/s`);
  if (heartbeat.kind === 'rollouts' && heartbeat.broken > 0) parts.push(`${heartbeat.broken} broken`);
  if (heartbeat.kind === 'analysis' && heartbeat.characters)
    parts.push(`${(heartbeat.characters / 1000).toFixed(1)} kB of replies`);
  return parts;
}

const trainParts = ({ step, steps, reward, rollouts, waitsFor }: TrainHeartbeat, runs: boolean): string[] => [
  steps === undefined ? `step ${step}` : `step ${step}/${steps}`,
  ...(reward === undefined ? [] : [`reward ${reward.toFixed(2)}`]),
  ...(runs && rollouts ? [`rollouts ${rollouts.done}/${rollouts.total}`] : []),
  ...(runs && waitsFor ? [`waits for ${waitsFor}`] : []),
];

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
  const { name: owner, status, activities, progress, progressAt } = snapshot;
  const troubles = progressAt === undefined ? progress?.troubles : undefined;
  // Activities of the campaign itself belong to the stage that runs now.
  const own = activityTexts({ activities, troubles, owner, rates, now });
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
  if (campaign === 'COMPLETED') return { ...line, status: 'done', detail: 'how it ended is in the report' };
  return { ...line, status: 'failed', detail: joined([line.detail, 'not finished']) };
}

function childLine({ snapshot, rates, now }: Tree, child: CampaignProgress['children'][number]): TreeLine {
  const { workflowId, kind, name, status } = child;
  const seen = snapshot.children.find((one) => one.workflowId === workflowId);
  const progress = status === 'running' ? seen?.progress : undefined;
  const { activities = [] } = seen ?? {};
  const reported = activityTexts({ activities, troubles: seen?.progress?.troubles, owner: workflowId, rates, now });
  const waits = waitsFor(snapshot.name, progress?.waiting, now);
  const round = progress && ['synthesize', 'calibrate'].includes(progress.phase) ? ` round ${progress.round}` : '';
  // What its activities report is newer than what the workflow knows of them.
  const details = reported.length > 0 ? reported : [progress?.detail ?? child.detail];
  return {
    key: `${kind}/${name}`,
    depth: 1,
    status,
    label: kind === 'arm' ? `${name} (arm)` : name,
    detail: joined([
      progress?.paused ? 'paused' : '',
      // The line says already whose they are.
      ...(waits
        ? [waits]
        : [progress ? progress.phase + round : '', ...details.map((text) => text.replace(`${name}: `, ''))]),
      progress?.calibration ? `calibration ${progress.calibration}` : '',
    ]),
  };
}

/** The campaign's answer to the progress query; what it can't answer now, as the server knows it. */
function progressOf(snapshot: Snapshot): Pick<CampaignProgress, 'stages' | 'children'> {
  const { progress, progressAt, stage, status, children } = snapshot;
  const reported = progress?.children ?? [];
  const others = children.filter(({ workflowId }) => reported.every((child) => child.workflowId !== workflowId));
  const reached = stage === undefined ? -1 : stages.indexOf(stage);
  const last: StepStatus = status === 'RUNNING' ? 'running' : status === 'COMPLETED' ? 'done' : 'failed';
  const known = stages.map((name, i): CampaignProgress['stages'][number] => ({
    name,
    status: i < reached ? 'done' : i === reached ? last : 'waiting',
    detail: progress?.stages.find((one) => one.name === name)?.detail ?? '',
  }));
  return {
    stages: progress && progressAt === undefined ? progress.stages : known,
    children: [...reported, ...others.map((child) => ({ ...child, status: 'running' as const, detail: '' }))],
  };
}
