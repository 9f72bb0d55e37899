/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import { type Waiting, waitingText } from '../../domain/approval';
import { type ActivitySnapshot, inWords, type Snapshot } from './snapshot';
import { activityEntry } from '../../domain/activities';
import type { FailureType } from '../../domain/failures';
import type { TrainHeartbeat } from '../../domain/work';
import type { CampaignProgress, StepStatus, Trouble } from '../../workflows/messages';
import { causesText } from '../../domain/rollout';
import { stages } from '../../domain/campaign';
import { stoppedText } from '../temporal';

const WINDOW_MS = 30_000;

export class Rates {
  private readonly seen = new Map<string, { at: number; count: number }[]>();

  /** Growth of a counter per second; undefined until it was seen growing. A counter that falls begins anew. */
  perSecond(counter: string, count: number, now: number): number | undefined {
    let points = this.seen.get(counter) ?? [];
    const last = points.at(-1);
    if (last && count < last.count) points = [];
    if (!last || count !== last.count || points.length === 0) points.push({ at: now, count });
    // The last point before the window stays: it is where the window's growth begins.
    while (points[1] && points[1].at < now - WINDOW_MS) points.shift();
    this.seen.set(counter, points);
    const first = points[0];
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

const MINUTE = 60_000;

/** Empty where nothing waits. */
export const waitsFor = (campaign: string, waiting: Waiting | undefined, now: number): string =>
  waiting ? waitingText({ waiting, campaign, since: sinceText(now - waiting.since) }) : '';

/** `since 20 min`, `since 2 h`, `since 3 days`; empty for what has just begun. */
export function sinceText(ms: number): string {
  const minutes = Math.floor(ms / (5 * MINUTE)) * 5;
  if (minutes < 5) return '';
  if (minutes < 60) return `since ${minutes} min`;
  const hours = Math.floor(ms / (60 * MINUTE));
  return hours < 48 ? `since ${hours} h` : `since ${Math.floor(hours / 24)} days`;
}

/** Of which kind of worker is told by the queue that it takes the step from. */
const workers: Record<string, string> = {
  control: 'a control worker',
  rollouts: 'a rollouts worker',
  gpu: 'a gpu slot',
};

const MODEL_AWAY: FailureType = 'LanguageModelUnavailable';

/** Workers pass heartbeats on at least this often while there is progress. */
const QUIET_SECONDS = 60;

interface Activities {
  activities: ActivitySnapshot[];
  /** Of their steps: what the workflow knows of attempts before these. */
  troubles?: Trouble[] | undefined;
  /** Whose they are: counters of one name belong to it. */
  owner: string;
  rates: Rates;
  now: number;
}

/** One text each; those that say the same are counted. */
export function activityTexts({ activities, troubles = [], ...of }: Activities): string[] {
  const counts = new Map<string, number>();
  const texts = [
    ...activities.map((activity) => activityText({ activity, ...of })),
    ...troubles.flatMap((trouble) => troubleText(trouble, of.now)),
  ];
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count > 1 ? `${count} times: ${text}` : text));
}

interface One extends Omit<Activities, 'activities' | 'troubles'> {
  activity: ActivitySnapshot;
}

function activityText(one: One): string {
  const { activity, now } = one;
  const { state, attempt, nextAttemptAt = 0, lastFailure, lastFailureType } = activity;
  const reason = lastFailure ? `: ${oneLine(lastFailure)}` : '';
  const parts = progressParts(one);
  if (state === 'scheduled' && attempt > 1 && nextAttemptAt > now) {
    const seconds = `${Math.ceil((nextAttemptAt - now) / 1000)} s`;
    // No capacity is no trouble: it says itself when to come back.
    const again =
      lastFailureType === MODEL_AWAY
        ? `waits for the language model${reason}, again in ${seconds}`
        : `attempt ${attempt} in ${seconds}${reason}`;
    return [...parts, again].join(' · ');
  }
  if (state === 'scheduled') parts.push(`waits for ${workerFor(activity)}`);
  else if (parts.length === 0) parts.push(activityEntry(activity.type)?.doing ?? activity.type);
  if (state === 'cancelling') parts.push('stopping');
  if (state === 'started') {
    // A heartbeat of the attempt before says nothing about this one.
    const lastSignOfLife = Math.max(activity.heartbeatAt ?? 0, activity.startedAt ?? 0) || now;
    const quiet = (now - lastSignOfLife) / 1000;
    // Whole minutes: silence is not news every second.
    if (quiet > QUIET_SECONDS) parts.push(`silent for ${Math.floor(quiet / 60)} min`);
  }
  // Why there is another one: it is not about the one that runs.
  if (attempt > 1) parts.push(`attempt ${attempt}${lastFailure ? ` after: ${oneLine(lastFailure)}` : ''}`);
  return parts.join(' · ');
}

/** What is outside is told by its activity, whose attempts these are. */
function troubleText({ retry, type, reason, nextAt, attempt }: Trouble, now: number): string[] {
  if (retry === 'outside') return [];
  const seconds = Math.ceil((nextAt - now) / 1000);
  const times = attempt ? `attempt ${attempt.number} of ${attempt.of}` : 'again';
  return [`${times} ${seconds > 0 ? `in ${seconds} s:` : 'after:'} ${oneLine(inWords(type, reason))}`];
}

function workerFor({ queue = '' }: ActivitySnapshot): string {
  const worker = workers[queue.slice(0, queue.indexOf('-'))];
  return worker ? `${worker} (${queue})` : 'a worker';
}

/** What is done; while it runs, also how fast. */
function progressParts({ activity: { heartbeat, state }, owner, rates, now }: One): string[] {
  if (!heartbeat) return [];
  const runs = state !== 'scheduled';
  if (heartbeat.kind === 'train') return trainParts(heartbeat, runs);
  const { title, done, total } = heartbeat;
  const perSecond = runs ? rates.perSecond(`${owner} ${title}`, done, now) : undefined;
  return [
    `${title} ${done}/${total}`,
    ...(perSecond === undefined ? [] : [`${perSecond.toFixed(1)}/s`]),
    ...(heartbeat.kind === 'rollouts' && heartbeat.broken > 0 ? [`${heartbeat.broken} broken`] : []),
    ...(heartbeat.kind === 'analysis' && heartbeat.characters ? [kilobytes(heartbeat.characters)] : []),
  ];
}

const kilobytes = (characters: number): string => `${(characters / 1000).toFixed(1)} kB of replies`;

const trainParts = ({ step, steps: all, reward, rollouts, waitsFor }: TrainHeartbeat, runs: boolean): string[] => [
  all === undefined ? `step ${step}` : `step ${step}/${all}`,
  ...(reward === undefined ? [] : [`reward ${reward.toFixed(2)}`]),
  ...(runs && rollouts ? [`rollouts ${rollouts.done}/${rollouts.total}`] : []),
  ...(runs && waitsFor ? [`waits for ${waitsFor}`] : []),
];

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 120);

export interface TreeLine {
  /** What the line is about: a stage, or a child's name. */
  key: string;
  depth: number;
  status: StepStatus;
  label: string;
  /** What was found or is being done; changes as it goes on. */
  detail: string;
}

/** How a campaign stands, in a word or two. */
export function stateOf({ status, paused, asOf, stoppedAfter }: Snapshot): string {
  if (stoppedAfter) return stoppedText(stoppedAfter);
  if (status !== 'RUNNING') return status.toLowerCase().replaceAll('_', ' ');
  return `${asOf === undefined ? '' : 'was '}${paused ? 'paused' : 'running'}`;
}

/** Of what rollouts broke; empty where none did. Those of children are counted in the report only. */
export const brokenText = ({ progress }: Snapshot): string => {
  const { broken, causes } = progress?.rollouts ?? { broken: 0 };
  return causes ? `${broken} ${broken === 1 ? 'rollout' : 'rollouts'} broke: ${causesText(causes, broken)}` : '';
};

interface Tree {
  snapshot: Snapshot;
  rates: Rates;
  now: number;
}

/** Lines of the tree: stages, and under `capabilities` the children with their phase and what their activities do or wait for. */
export function treeLines({ snapshot, rates, now }: Tree): TreeLine[] {
  const at = snapshot.asOf ?? now;
  const { activities, progress, progressAt } = snapshot;
  const troubles = progressAt === undefined ? progress?.troubles : undefined;
  const own = activityTexts({ activities, troubles, owner: snapshot.name, rates, now: at });
  const known = progressOf(snapshot);
  const lines = known.stages.flatMap((stage) => {
    // Activities of the campaign itself belong to the stage that runs now.
    const waits = stage.name === 'selection' ? waitsFor(snapshot.name, snapshot.progress?.waiting, at) : '';
    const parts = stage.status === 'running' ? [waits, stage.detail, ...own] : [stage.detail];
    const line: TreeLine = {
      key: stage.name,
      depth: 0,
      status: stage.status,
      label: stage.name,
      detail: joined(parts),
    };
    return stage.name === 'capabilities' ? [line, ...childLines({ snapshot, rates, now: at }, known.children)] : [line];
  });
  return snapshot.status === 'RUNNING'
    ? withOutside({ lines, snapshot, own })
    : lines.map(ended(snapshot.status === 'COMPLETED'));
}

/** Activities before the first stage and after the last one have a line of their own. */
function withOutside(tree: { lines: TreeLine[]; snapshot: Snapshot; own: string[] }): TreeLine[] {
  const { lines, snapshot, own } = tree;
  if (own.length === 0 || lines.some(({ depth, status }) => depth === 0 && status === 'running')) return lines;
  const last = snapshot.activities.some(({ type }) => type === 'writeReport');
  const name = last ? 'report' : 'preparation';
  const line: TreeLine = { key: name, depth: 0, status: 'running', label: name, detail: joined(own) };
  return last ? [...lines, line] : [line, ...lines];
}

/** In a campaign that has ended nothing runs; what its last answer called running ended with it. */
const ended =
  (completed: boolean) =>
  (line: TreeLine): TreeLine => {
    if (line.status !== 'running') return line;
    if (completed) return { ...line, status: 'done', detail: 'how it ended is in the report' };
    return { ...line, status: 'failed', detail: joined([line.detail, 'not finished']) };
  };

function childLines({ snapshot, rates, now }: Tree, children: CampaignProgress['children']): TreeLine[] {
  return children.map((child): TreeLine => {
    const seen = snapshot.children.find(({ workflowId }) => workflowId === child.workflowId);
    const phase = child.status === 'running' ? seen?.progress : undefined;
    const activities = seen?.activities ?? [];
    // The line says already whose they are.
    const troubles = seen?.progress?.troubles;
    const reported = activityTexts({ activities, troubles, owner: child.workflowId, rates, now }).map((text) =>
      text.replace(`${child.name}: `, ''),
    );
    const waits = waitsFor(snapshot.name, phase?.waiting, now);
    return {
      key: `${child.kind}/${child.name}`,
      depth: 1,
      status: child.status,
      label: child.kind === 'arm' ? `${child.name} (arm)` : child.name,
      detail: joined([
        phase?.paused ? 'paused' : '',
        phase && !waits
          ? phase.phase === 'synthesize' || phase.phase === 'calibrate'
            ? `${phase.phase} round ${phase.round}`
            : phase.phase
          : '',
        // What its activities report is newer than what the workflow knows of them.
        ...(waits ? [waits] : reported.length > 0 ? reported : [phase?.detail ?? child.detail]),
        phase?.calibration ? `calibration ${phase.calibration}` : '',
      ]),
    };
  });
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

const joined = (parts: string[]): string => parts.filter(Boolean).join(' · ');
