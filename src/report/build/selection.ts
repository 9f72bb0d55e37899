/**
 * The selection in the report: every candidate with its statistics, and what an analyst shows for its findings: cited steps, reasons of labels,
 * faults of the environment or the simulated user. Invariants: an analyst that gives none of it has nothing here; a trajectory counts for a
 * labeling pass only if that pass looked at it.
 */
import type { ArtifactStore } from '../../artifacts/store';
import { decisionText } from '../../domain/approval';
import {
  beginningOf,
  commonest,
  type Discovery,
  discoverySchema,
  type Fault,
  type LabelPass,
  labelPassSchema,
  type Selection,
  selectionSchema,
} from '../../domain/capability';
import type { ReportDraft } from '../model';
import type { ReportedCandidate, ReportedEvidence, ReportedFaults, ReportedSelection } from '../capability-model';
import type { CampaignRecord, SelectionResult } from '../../domain/results';
import { nothing, plainFigure, readArtifact, slug } from './figures';
import { citationOf, type Labeled, readLabeled, trajectoryOf } from './quotes';
import type { z } from 'zod';
import { agreementOf } from '../../domain/selection';
import type { ArtifactRef } from '../../domain/artifacts';
import type { Figure } from '../../domain/figure';

export async function selectionOf(
  store: ArtifactStore,
  { selection: found, campaign, baseRollouts: { ref: labeled } }: CampaignRecord,
): Promise<Pick<ReportDraft, 'selection'>> {
  if (!found) return {};
  const [schema, what] = [selectionSchema, 'a selection'];
  const selection = await readArtifact({ store, ref: found.selection, schema, what });
  const shown = await readFound({ store, found, selection });
  const quotes = await readLabeled({ store, ref: labeled, quoted: quotedIn(shown) });
  const { failed, passed } = quotes;
  const outcome = (name: string, value: number) =>
    plainFigure({ id: `selection.${name}`, value, n: failed + passed, unit: 'count', from: [labeled] });
  return {
    selection: {
      rule: campaign.selection,
      failed: outcome('failed', failed),
      passed: outcome('passed', passed),
      candidates: candidatesOf({ shown, found, selection }),
      passes: allPasses(found),
      failedPasses: found.failedPasses,
      ...(selection.reason !== undefined && { reason: selection.reason }),
      ...(found.noComposite !== undefined && { noComposite: found.noComposite }),
      ...(found.decision && { decision: decisionText(found.decision) }),
      ...shownOf({ ...shown, found, labeled: quotes }),
      from: [found.selection],
    },
  };
}

const allPasses = ({ labels, failedPasses }: SelectionResult): number => labels.length + failedPasses.length;

/** In the order of the selection; where nothing was labeled, of the candidates. */
function candidatesOf(o: { shown: Found; found: SelectionResult; selection: Selection }): ReportedCandidate[] {
  const { shown, found, selection } = o;
  const { candidates } = shown.discovery;
  const passes = allPasses(found);
  // As they were approved, where somebody was asked.
  const taken = new Map(found.selected.map(({ candidate }) => [candidate.name, candidate.definition]));
  if (found.labels.length === 0)
    return candidates.map(({ name, definition }) => ({
      name,
      definition: taken.get(name) ?? definition,
      votes: 0,
      passes,
      coverage: nothing(`selection.${slug(name)}.coverage`),
      delta: nothing(`selection.${slug(name)}.delta`),
      selected: taken.has(name),
    }));
  const agreements = agreementFigures(shown, found);
  return selection.capabilities.map((c) => {
    const agreement = agreements.get(c.name);
    const figure = (name: 'coverage' | 'delta') =>
      plainFigure({
        id: `selection.${slug(c.name)}.${name}`,
        value: c[name].mean,
        std: c[name].std,
        n: c.passes,
        unit: name === 'coverage' ? 'fraction' : 'difference',
        from: [found.selection],
      });
    return {
      name: c.name,
      definition: taken.get(c.name) ?? candidates.find(({ name }) => name === c.name)?.definition ?? '',
      votes: c.votes,
      passes,
      coverage: figure('coverage'),
      delta: figure('delta'),
      ...(agreement && { agreement }),
      selected: taken.has(c.name),
    };
  });
}

/** Trajectories that are shown of those that are put down to faults. */
const EXAMPLES = 8;

export interface Found {
  discovery: Discovery;
  passes: LabelPass[];
  /** By selected capability, where passes give reasons. */
  lacking: ReadonlyMap<string, Lacking[]>;
  faulty: FaultVotes[];
}

export async function readFound(o: {
  store: ArtifactStore;
  found: SelectionResult;
  selection: Selection;
}): Promise<Found> {
  const { store, found, selection } = o;
  const read = <S extends z.ZodType>(ref: ArtifactRef, schema: S, what: string) =>
    readArtifact({ store, ref, schema, what });
  const discovery = await read(found.candidates, discoverySchema, 'what discovery found');
  const passes: LabelPass[] = [];
  for (const ref of found.labels) passes.push(await read(ref, labelPassSchema, 'a labeling pass'));
  const lacking = selection.capabilities.flatMap(({ name, selected, evidence }) => {
    const shown = selected ? evidence.flatMap((id) => lackingOf(passes, name, id) ?? []) : [];
    return shown.length > 0 ? [[name, shown] as const] : [];
  });
  return { discovery, passes, lacking: new Map(lacking), faulty: faultyTrajectories(passes) };
}

/** Of the passes on each candidate, where the analyst cites steps or gives reasons. */
function agreementFigures({ discovery, passes }: Found, { labels }: SelectionResult): Map<string, Figure> {
  const cites = [...discovery.candidates, ...discovery.faults].some(({ citations = [] }) => citations.length > 0);
  const gives = passes.some(({ reasons, failures }) => reasons ?? failures);
  if (passes.length < 2 || (!cites && !gives)) return new Map();
  return new Map(
    Object.entries(agreementOf(passes)).map(([name, { alpha, units }]) => {
      const id = `selection.${slug(name)}.agreement`;
      return [name, alpha === undefined ? nothing(id) : plainFigure({ id, value: alpha, n: units, from: labels })];
    }),
  );
}

/** Keys of the rollouts whose messages it quotes. */
export function quotedIn({ discovery, lacking, faulty }: Found): Set<string> {
  const cited = [...discovery.candidates, ...discovery.faults].flatMap(({ citations = [] }) => citations);
  const all = [...cited, ...[...lacking.values()].flat(), ...faulty.slice(0, EXAMPLES)];
  return new Set(all.map(({ rollout }) => rollout));
}

export function shownOf(
  of: Found & { found: SelectionResult; labeled: Labeled },
): Pick<ReportedSelection, 'evidence' | 'faults'> {
  const { discovery, passes, faulty, labeled } = of;
  const { faults } = discovery;
  const evidence = evidenceOf(of);
  return {
    ...(evidence.length > 0 && { evidence }),
    ...((faults.length > 0 || faulty.length > 0) && {
      faults: {
        found: faults.map((fault) => ({
          ...fault,
          citations: fault.citations.map((citation) => citationOf(citation, labeled)),
        })),
        ...(passes.length > 0 && { trajectories: faultyOf(of) }),
      },
    }),
  };
}

const evidenceOf = ({ discovery, lacking, labeled }: Found & { labeled: Labeled }): ReportedEvidence[] =>
  discovery.candidates.flatMap(({ name, citations = [] }) => {
    const lacks = lacking.get(name)?.map(({ rollout, message, reason, ...counts }) => ({
      ...citationOf({ rollout, message, says: reason }, labeled),
      ...counts,
    }));
    if (citations.length === 0 && !lacks) return [];
    const cited = citations.map((citation) => citationOf(citation, labeled));
    return [{ capability: name, citations: cited, ...(lacks && { lacking: lacks }) }];
  });

function faultyOf({
  faulty,
  found,
  labeled,
}: Found & { found: SelectionResult; labeled: Labeled }): NonNullable<ReportedFaults['trajectories']> {
  const figure = (of: FaultVotes['of']) =>
    plainFigure({
      id: `selection.faults.${of}`,
      value: faulty.filter((one) => one.of === of).length,
      n: labeled.failed,
      unit: 'count',
      from: found.labels,
    });
  return {
    environment: figure('environment'),
    user: figure('user'),
    examples: faulty.slice(0, EXAMPLES).map((one) => ({ ...one, ...trajectoryOf(one.rollout, labeled) })),
  };
}

type Labels = LabelPass['labels'][string];

const holds = (labels: Labels, id: string): boolean => Object.values(labels).some((list) => list.includes(id));

export interface Lacking {
  rollout: string;
  message?: number;
  reason: string;
  lacking: number;
  passes: number;
  citing: number;
}

/** Of a failed trajectory: how many passes label it LACKING, and why. Undefined where no pass gives a reason. */
export function lackingOf(passes: readonly LabelPass[], capability: string, id: string): Lacking | undefined {
  const looking = passes.flatMap((pass) => {
    const labels = pass.labels[capability];
    return labels && holds(labels, id) ? [{ labels, reason: pass.reasons?.[capability]?.[id] }] : [];
  });
  const lacking = looking.filter(({ labels }) => labels.lacking_failed.includes(id));
  const reasons = lacking.flatMap(({ reason }) => (reason ? [reason] : []));
  const step = commonest(reasons.flatMap((reason) => reason.message ?? []));
  const message = step?.message;
  const told = reasons.find((reason) => reason.message === message);
  if (!told) return undefined;
  return {
    rollout: id,
    ...(message !== undefined && { message }),
    reason: told.reason,
    lacking: lacking.length,
    passes: looking.length,
    citing: step?.votes ?? 0,
  };
}

interface FaultVotes {
  rollout: string;
  of: Fault['of'];
  reason: string;
  votes: number;
  passes: number;
}

/** Failed trajectories that the passes put down to the environment or the user more often than to the agent, sorted as text. */
export function faultyTrajectories(passes: readonly LabelPass[]): FaultVotes[] {
  const ids = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return [...ids].sort().flatMap((rollout): FaultVotes[] => {
    const told = passes.flatMap(({ failures }) => failures?.[rollout] ?? []);
    const found = beginningOf(told);
    if (!found || found.of === 'agent') return [];
    return [{ rollout, of: found.of, reason: found.reason, votes: found.blaming, passes: told.length }];
  });
}
