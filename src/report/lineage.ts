/**
 * Lineage: from a figure or an artifact back to the batches of rollouts behind it, by the provenance that every artifact
 * has. Invariant: a tree names each artifact's inputs once; where it comes again it is marked `shared` and not walked again.
 */
import { distance } from 'fastest-levenshtein';
import type { ArtifactStore } from '../store/store';
import { type ArtifactRef, type Figure, figuresIn } from '../domain/artifacts';
import type { Outcome } from '../domain/outcomes';
import { isSuccess } from '../domain/rollout';
import { readOutcomes, ROLLOUTS_MEDIA_TYPE } from '../rollout/read';
import { shortSha, spreadText, valueText, wholeNumber } from './format';
import type { Report } from './model';

interface RolloutCounts {
  scored: number;
  broken: number;
  successes: number;
}

export interface ArtifactNode {
  kind: 'artifact';
  ref: ArtifactRef;
  /** Absent if the store has no provenance of it. */
  key?: string;
  producer?: string;
  /** Only for batches of rollouts. */
  rollouts?: RolloutCounts;
  /** Its inputs stand at its first place in the tree. */
  shared?: true;
  /** Why it can't be followed: not in the store, or damaged. */
  problem?: string;
  inputs: ArtifactNode[];
}
type LineageNode = ArtifactNode | { kind: 'figure'; figure: Figure; inputs: ArtifactNode[] };

interface Lineage {
  root: LineageNode;
  /** Over all batches in the tree; a rollout that several hold is counted once, as scored if one of them has it scored. */
  totals: RolloutCounts & { batches: number };
}

/** Thrown where an id is no figure and no artifact. */
export class UnknownStartError extends Error {
  override name = 'UnknownStartError';
  constructor(start: string, near: readonly string[]) {
    super(`'${start}' is no rollout, figure or artifact${near.length > 0 ? `; near ones: ${near.join(', ')}` : ''}`);
  }
}

/** Walks back from artifacts, and remembers the batches that it comes to. `nearest`: not to what those were made from. */
function walker(store: ArtifactStore, nearest = false) {
  const seen = new Set<string>();
  const batches: { ref: ArtifactRef; outcomes: Outcome[] }[] = [];
  async function walk(ref: ArtifactRef): Promise<ArtifactNode> {
    const node: ArtifactNode = { kind: 'artifact', ref, inputs: [] };
    const shared = seen.has(ref.sha256);
    seen.add(ref.sha256);
    try {
      const { key, producer, inputs } = await store.provenance(ref);
      Object.assign(node, { key, producer });
      if (shared) return { ...node, shared };
      if (ref.mediaType === ROLLOUTS_MEDIA_TYPE && producer.startsWith('rollouts')) {
        const outcomes = await readOutcomes({ store, ref });
        batches.push({ ref, outcomes });
        node.rollouts = countsOf(outcomes);
      }
      if (!nearest || !node.rollouts) node.inputs = await walkAll(inputs);
    } catch (error) {
      node.problem = error instanceof Error ? error.message : String(error);
    }
    return node;
  }
  async function walkAll(refs: readonly ArtifactRef[]): Promise<ArtifactNode[]> {
    const nodes: ArtifactNode[] = [];
    for (const ref of refs) nodes.push(await walk(ref));
    return nodes;
  }
  return { walk, walkAll, batches };
}

function countsOf(outcomes: readonly Outcome[]): RolloutCounts {
  const byKey = new Map<string, Outcome>();
  for (const one of outcomes) if (byKey.get(one.key)?.status !== 'scored') byKey.set(one.key, one);
  const scored = [...byKey.values()].filter((one) => one.status === 'scored');
  return { scored: scored.length, broken: byKey.size - scored.length, successes: scored.filter(isSuccess).length };
}

/**
 * Walks back from `start`: a figure's id (needs the report), an artifact's key or the beginning of its sha256. Throws UnknownStartError.
 */
export async function lineage(ask: { store: ArtifactStore; report?: Report; start: string }): Promise<Lineage> {
  const { store, report, start } = ask;
  const { walk, walkAll, batches } = walker(store);
  const figures = report === undefined ? [] : figuresIn(report);
  const findRoot = async (): Promise<LineageNode> => {
    const figure = figures.find(({ id }) => id === start);
    if (figure) return { kind: 'figure', figure, inputs: await walkAll(figure.from) };
    const ref = await store.resolve(start);
    if (ref) return walk(ref);
    throw new UnknownStartError(start, nearIds(start, figures));
  };
  const root = await findRoot();
  return { root, totals: { batches: batches.length, ...countsOf(batches.flatMap(({ outcomes }) => outcomes)) } };
}

/** Returns the sha256 of the batches that a figure or an artifact was made from. Throws UnknownStartError. */
export async function batchesBehind(ask: {
  store: ArtifactStore;
  report?: Report | undefined;
  start: string;
}): Promise<Set<string>> {
  const { store, report, start } = ask;
  const { walk, walkAll, batches } = walker(store, true);
  const figure = figuresIn(report ?? {}).find(({ id }) => id === start);
  const ref = figure ? undefined : await store.resolve(start);
  if (figure) await walkAll(figure.from);
  else if (ref) await walk(ref);
  else throw new UnknownStartError(start, []);
  return new Set(batches.map((batch) => batch.ref.sha256));
}

/** Figures whose ids need few edits to be `start`. */
function nearIds(start: string, figures: readonly Figure[]): string[] {
  const ranked = [...new Set(figures.map(({ id }) => id))]
    .map((id) => ({ id, edits: distance(start, id) }))
    .filter(({ id, edits }) => edits <= id.length / 2);
  return ranked
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 6)
    .map(({ id }) => id);
}

const countsText = ({ scored, broken, successes }: RolloutCounts): string =>
  `${wholeNumber(scored)} rollouts scored (${wholeNumber(successes)} successes), ${wholeNumber(broken)} broken`;

/** Keys may be long hashes: enough to recognise one. */
const shortKey = (key: string): string => (key.length <= 60 ? key : `${key.slice(0, 59)}…`);

const artifactLine = ({ ref, producer, key, rollouts, problem }: ArtifactNode): string =>
  [shortSha(ref.sha256), producer ?? ref.mediaType, rollouts && countsText(rollouts), problem ?? (key && shortKey(key))]
    .filter(Boolean)
    .join('  ');

function rootLine(node: LineageNode): string {
  if (node.kind === 'artifact') return artifactLine(node);
  const { figure } = node;
  return [`${figure.id}  ${valueText(figure)}`, spreadText(figure), `n ${figure.n}`].filter(Boolean).join(', ');
}

const SHOWN_ABOVE = 4;

function aboveLine(nodes: readonly ArtifactNode[]): string {
  const named = nodes.slice(0, SHOWN_ABOVE).map(({ ref }) => shortSha(ref.sha256));
  const count = nodes.length === 1 ? '' : `${nodes.length} artifacts, `;
  return `${count}shown above: ${named.join(', ')}${nodes.length > SHOWN_ABOVE ? ', …' : ''}`;
}

function branchLines(inputs: readonly ArtifactNode[], indent: string): string[] {
  const again = inputs.filter((node) => node.shared);
  const entries = [
    ...inputs.filter((node) => !node.shared).map((node) => ({ line: artifactLine(node), inputs: node.inputs })),
    ...(again.length > 0 ? [{ line: aboveLine(again), inputs: [] }] : []),
  ];
  return entries.flatMap(({ line, inputs: below }, n) => {
    const last = n === entries.length - 1;
    return [`${indent}${last ? '└─ ' : '├─ '}${line}`, ...branchLines(below, `${indent}${last ? '   ' : '│  '}`)];
  });
}

/** The tree and its totals, without a last newline. */
export const lineageText = ({ root, totals }: Lineage): string =>
  [
    rootLine(root),
    ...branchLines(root.inputs, ''),
    `in all: ${totals.batches} batch${totals.batches === 1 ? '' : 'es'}, ${countsText(totals)}`,
  ].join('\n');
