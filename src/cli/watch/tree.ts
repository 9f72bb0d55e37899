/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import type { StepStatus } from '../../workflows/messages';
import type { Rates } from './rates';
import type { ActivitySnapshot, Snapshot } from './snapshot';

export interface TreeLine {
  /** What the line is about: a stage, or a child's name. */
  key: string;
  depth: number;
  status: StepStatus;
  label: string;
  /** What was found or is being done; changes as it goes on. */
  detail: string;
}

/** Lines of the tree: stages, and under `capabilities` the children with their phase and what their activities report. */
export function treeLines({ snapshot, rates, now }: { snapshot: Snapshot; rates: Rates; now: number }): TreeLine[] {
  const { progress } = snapshot;
  if (!progress) return [];
  return progress.stages.flatMap((stage) => {
    // Activities of the campaign itself belong to the stage that runs now.
    const own = stage.status === 'running' ? snapshot.activities : [];
    const line: TreeLine = {
      key: stage.name,
      depth: 0,
      status: stage.status,
      label: stage.name,
      detail: joined([stage.detail, ...activityTexts({ activities: own, owner: snapshot.name, rates, now })]),
    };
    if (stage.name !== 'capabilities') return [line];
    const children = progress.children.map((child): TreeLine => {
      const seen = snapshot.children.find(({ workflowId }) => workflowId === child.workflowId);
      const phase = child.status === 'running' ? seen?.progress : undefined;
      const reported = activityTexts({ activities: seen?.activities ?? [], owner: child.workflowId, rates, now });
      return {
        key: `${child.kind}/${child.name}`,
        depth: 1,
        status: child.status,
        label: child.kind === 'arm' ? `${child.name} (arm)` : child.name,
        detail: joined([
          phase?.paused ? 'paused' : '',
          phase
            ? phase.phase === 'synthesize' || phase.phase === 'calibrate'
              ? `${phase.phase} round ${phase.round}`
              : phase.phase
            : '',
          // What its activities report is newer than what the workflow knows of them.
          ...(reported.length > 0 ? reported : [phase?.detail ?? child.detail]),
        ]),
      };
    });
    return [line, ...children];
  });
}

interface Activities {
  activities: ActivitySnapshot[];
  owner: string;
  rates: Rates;
  now: number;
}

/** Workers pass heartbeats on at least this often while there is progress. */
const QUIET_SECONDS = 60;

function activityTexts({ activities, owner, rates, now }: Activities): string[] {
  return activities.flatMap((activity) => {
    const { heartbeat, heartbeatAt, attempt, lastFailure } = activity;
    const parts: string[] = [];
    if (heartbeat?.kind === 'train') {
      parts.push(`step ${heartbeat.step}/${heartbeat.steps}`);
      if (heartbeat.reward !== undefined) parts.push(`reward ${heartbeat.reward.toFixed(2)}`);
      if (heartbeat.rollouts) parts.push(`rollouts ${heartbeat.rollouts.done}/${heartbeat.rollouts.total}`);
    } else if (heartbeat) {
      const { title, done, total } = heartbeat;
      const perSecond = rates.perSecond(`${owner} ${title}`, done, now);
      parts.push(`${title} ${done}/${total}`);
      if (perSecond !== undefined) parts.push(`${perSecond.toFixed(1)}/s`);
      if (heartbeat.kind === 'rollouts' && heartbeat.broken > 0) parts.push(`${heartbeat.broken} broken`);
    }
    const quiet = heartbeatAt === undefined ? 0 : (now - heartbeatAt) / 1000;
    // Whole minutes: silence is not news every second.
    if (quiet > QUIET_SECONDS) parts.push(`silent for ${Math.floor(quiet / 60)} min`);
    if (attempt > 1) parts.push(`attempt ${attempt}${lastFailure ? `: ${oneLine(lastFailure)}` : ''}`);
    return parts.length > 0 ? [parts.join(' · ')] : [];
  });
}

const joined = (parts: string[]): string => parts.filter(Boolean).join(' · ');
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 120);
