/**
 * What an analyst shows for its findings: steps that it cites, reasons of its labels, faults of the environment or the simulated user.
 * Invariant: an analyst that gives none of it has nothing here.
 */
import type { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import { agreementOf } from '../../domain/selection';
import {
  discoverySchema,
  labelPassSchema,
  type Discovery,
  type LabelPass,
  type Selection,
} from '../../domain/capability';
import type { ArtifactRef } from '../../domain/artifacts';
import type { Figure } from '../../domain/figure';
import type { ReportedSelection } from '../../domain/reported-capability';
import type { ReportedEvidence, ReportedFaults } from '../../domain/reported-evidence';
import type { SelectionResult } from '../../domain/results';
import { readArtifact } from './evidence';
import { nothing, plainFigure, slug } from './figures';
import { lackingOf, faultyTrajectories, type FaultVotes, type Lacking } from './labels';
import { citationOf, trajectoryOf, type Labeled } from './quotes';

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
export function agreementFigures({ discovery, passes }: Found, { labels }: SelectionResult): Map<string, Figure> {
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
