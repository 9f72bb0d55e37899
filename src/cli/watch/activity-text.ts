/** What an activity does or waits for, in words. Invariant: true of this moment: nothing that waits is called silent, nothing that ran before runs now. */
import type { AnalysisActivities, ControlActivities, GpuActivities, RolloutActivities } from '../../activities/types';
import type { FailureType } from '../../domain/failures';
import type { TrainHeartbeat } from '../../domain/work';
import type { Trouble } from '../../workflows/messages';
import type { Rates } from './rates';
import { inWords } from './reasons';
import type { ActivitySnapshot } from './snapshot';

type Activity = keyof (ControlActivities & AnalysisActivities & RolloutActivities & GpuActivities);

/** What each activity does: none can be left out. */
const doing: Record<Activity, string> = {
  prepare: 'checking the parts and splitting the tasks',
  discover: 'looking for capabilities',
  label: 'labeling trajectories',
  select: 'selecting capabilities',
  synthesize: 'writing the environment',
  selfTest: 'testing the environment',
  calibrate: 'holding the rewards against the bands',
  checkBase: 'looking at the base model',
  checkAdapters: 'trying the policy server with an adapter that changes nothing',
  rollOut: 'beginning rollouts',
  searchPrompt: 'beginning to search for a prompt',
  findGains: 'comparing the adapters',
  weighAdapters: 'beginning to train a gate',
  takeModules: 'taking over the environments',
  takeConversations: 'reading the conversations',
  recallDecision: 'looking for an earlier decision',
  keepDecision: 'keeping the decision',
  readCheckpoints: 'reading the checkpoints',
  bestIteration: 'choosing the best iteration',
  keepPiece: 'keeping what it came to',
  keepResult: 'keeping what it came to',
  fitRouter: 'fitting the router',
  train: 'beginning to train',
  fineTune: 'beginning to train on conversations',
  writeReport: 'writing the report',
};

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
  else if (parts.length === 0) parts.push((doing as Record<string, string>)[activity.type] ?? activity.type);
  if (state === 'cancelling') parts.push('stopping');
  if (state === 'started') {
    // A heartbeat of the attempt before says nothing about this one.
    const heard = Math.max(activity.heartbeatAt ?? 0, activity.startedAt ?? 0) || now;
    const quiet = (now - heard) / 1000;
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
