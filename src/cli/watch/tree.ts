/** A snapshot as a tree of lines, without colour or cursor movement: the same for the terminal and for JSON lines. */
import { causesText } from '../../domain/rollout';
import { stages } from '../../domain/campaign';
import type { CampaignProgress, StepStatus } from '../../workflows/messages';
import { stoppedText } from '../temporal';
import { activityTexts } from './activity-text';
import { waitsFor } from './waits';
import type { Rates } from './rates';
import type { Snapshot } from './snapshot';

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

/** What the campaign told of itself; what it can't tell now, as the server knows it. */
function progressOf(snapshot: Snapshot): Pick<CampaignProgress, 'stages' | 'children'> {
  const { progress, progressAt, stage, status, children } = snapshot;
  const told = progress?.children ?? [];
  const untold = children.filter(({ workflowId }) => told.every((child) => child.workflowId !== workflowId));
  const reached = stage === undefined ? -1 : stages.indexOf(stage);
  const last: StepStatus = status === 'RUNNING' ? 'running' : status === 'COMPLETED' ? 'done' : 'failed';
  const known = stages.map((name, i): CampaignProgress['stages'][number] => ({
    name,
    status: i < reached ? 'done' : i === reached ? last : 'waiting',
    detail: progress?.stages.find((one) => one.name === name)?.detail ?? '',
  }));
  return {
    stages: progress && progressAt === undefined ? progress.stages : known,
    children: [...told, ...untold.map((child) => ({ ...child, status: 'running' as const, detail: '' }))],
  };
}

const joined = (parts: string[]): string => parts.filter(Boolean).join(' · ');
