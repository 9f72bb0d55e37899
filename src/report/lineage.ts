/**
 * Lineage: from a figure, an artifact or a rollout back to the batches of rollouts behind it, by the provenance that every artifact
 * has. Invariant: a tree names each artifact's inputs once; where it comes again it is marked `shared` and not walked again.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { figuresIn, type Figure } from '../domain/figure';
import type { Report } from '../domain/report';
import { isSuccess, type Rollout } from '../domain/rollout';
import { readRollouts, ROLLOUTS_MEDIA_TYPE } from '../rollout/read';

export interface RolloutCounts {
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
export interface FigureNode {
  kind: 'figure';
  figure: Figure;
  inputs: ArtifactNode[];
}
export interface RolloutNode {
  kind: 'rollout';
  rollout: Pick<Rollout, 'key' | 'task' | 'attempt' | 'status'> & { reward?: number };
  inputs: ArtifactNode[];
}
export type LineageNode = ArtifactNode | FigureNode | RolloutNode;

export interface Lineage {
  root: LineageNode;
  /** Over all batches in the tree, each counted once. */
  totals: RolloutCounts & { batches: number };
}

/** What was asked for is no figure, artifact or rollout; `near` are figure ids that look like it. */
export class UnknownStartError extends Error {
  override name = 'UnknownStartError';
  constructor(
    readonly start: string,
    readonly near: string[],
  ) {
    super(`'${start}' is no figure, artifact or rollout${near.length > 0 ? `; near ones: ${near.join(', ')}` : ''}`);
  }
}

const isBatch = ({ ref, producer }: { ref: ArtifactRef; producer: string }): boolean =>
  ref.mediaType === ROLLOUTS_MEDIA_TYPE && producer.startsWith('rollouts');

const countRollouts = async (batch: { store: ArtifactStore; ref: ArtifactRef }): Promise<RolloutCounts> => {
  const counts = { scored: 0, broken: 0, successes: 0 };
  for await (const rollout of readRollouts(batch)) {
    counts[rollout.status] += 1;
    if (rollout.status === 'scored' && isSuccess(rollout)) counts.successes += 1;
  }
  return counts;
};

const walk = async (at: { store: ArtifactStore; ref: ArtifactRef; seen: Set<string> }): Promise<ArtifactNode> => {
  const { store, ref, seen } = at;
  const node: ArtifactNode = { kind: 'artifact', ref, inputs: [] };
  const shared = seen.has(ref.sha256);
  seen.add(ref.sha256);
  try {
    const { key, producer, inputs } = await store.provenance(ref);
    Object.assign(node, { key, producer });
    if (shared) return { ...node, shared: true };
    if (isBatch({ ref, producer })) node.rollouts = await countRollouts({ store, ref });
    for (const input of inputs) node.inputs.push(await walk({ store, ref: input, seen }));
  } catch (error) {
    node.problem = error instanceof Error ? error.message : String(error);
  }
  return node;
};

const walkAll = async ({
  store,
  refs,
}: {
  store: ArtifactStore;
  refs: readonly ArtifactRef[];
}): Promise<ArtifactNode[]> => {
  const seen = new Set<string>();
  const nodes: ArtifactNode[] = [];
  for (const ref of refs) nodes.push(await walk({ store, ref, seen }));
  return nodes;
};

/** Every artifact of a tree at its first place. */
const artifactsOf = (node: LineageNode): ArtifactNode[] => [
  ...(node.kind === 'artifact' && node.shared === undefined ? [node] : []),
  ...node.inputs.flatMap(artifactsOf),
];

const totals = (root: LineageNode): Lineage['totals'] => {
  const sum = { batches: 0, scored: 0, broken: 0, successes: 0 };
  for (const { rollouts } of artifactsOf(root)) {
    if (rollouts === undefined) continue;
    sum.batches += 1;
    for (const field of ['scored', 'broken', 'successes'] as const) sum[field] += rollouts[field];
  }
  return sum;
};

/** The rollout whose key is `start`, or the one whose key begins so, in the batches behind the report's figures. */
const findRollout = async (search: {
  store: ArtifactStore;
  report: Report;
  start: string;
}): Promise<RolloutNode | undefined> => {
  const { store, report, start } = search;
  const found = new Map<string, { rollout: RolloutNode['rollout']; batch: ArtifactRef }>();
  const refs = figuresIn(report).flatMap((figure) => figure.from);
  const nodes = await walkAll({ store, refs });
  for (const { ref, rollouts } of nodes.flatMap(artifactsOf)) {
    if (rollouts === undefined) continue;
    for await (const rollout of readRollouts({ store, ref })) {
      const { key, task, attempt, status } = rollout;
      if (!key.startsWith(start) || found.has(key)) continue;
      const reward = rollout.status === 'scored' ? { reward: rollout.reward } : {};
      found.set(key, { rollout: { key, task, attempt, status, ...reward }, batch: ref });
    }
  }
  const hit = found.get(start) ?? (found.size === 1 ? [...found.values()][0] : undefined);
  if (hit === undefined) return undefined;
  return { kind: 'rollout', rollout: hit.rollout, inputs: await walkAll({ store, refs: [hit.batch] }) };
};

/** Figure ids that share words with `start`, most shared words first, at most 6. */
export const nearFigures = ({ start, ids }: { start: string; ids: readonly string[] }): string[] => {
  const words = (text: string): string[] =>
    text
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word.length > 1);
  const asked = words(start);
  const alike = (a: string, b: string): boolean =>
    a === b || (a.length > 3 && b.length > 3 && a.slice(0, 4) === b.slice(0, 4));
  return [...new Set(ids)]
    .map((id) => ({ id, shared: words(id).filter((word) => asked.some((w) => alike(w, word))).length }))
    .filter(({ shared }) => shared > 0)
    .sort((a, b) => b.shared - a.shared || a.id.length - b.id.length || a.id.localeCompare(b.id))
    .slice(0, 6)
    .map(({ id }) => id);
};

/**
 * Walks back from `start`: a figure's id (needs the report), an artifact's key or the beginning of its sha256, or the beginning of a
 * rollout's key (needs the report; at least 8 digits). Throws UnknownStartError.
 */
export const lineage = async (ask: { store: ArtifactStore; report?: Report; start: string }): Promise<Lineage> => {
  const { store, report, start } = ask;
  const root = async (): Promise<LineageNode> => {
    const figures = report === undefined ? [] : figuresIn(report);
    const figure = figures.find(({ id }) => id === start);
    if (figure !== undefined) return { kind: 'figure', figure, inputs: await walkAll({ store, refs: figure.from }) };
    const ref = await store.resolve(start);
    if (ref !== undefined) return walk({ store, ref, seen: new Set() });
    const rollout =
      report !== undefined && /^[0-9a-f]{8,}$/.test(start) ? await findRollout({ store, report, start }) : undefined;
    if (rollout !== undefined) return rollout;
    throw new UnknownStartError(start, nearFigures({ start, ids: figures.map(({ id }) => id) }));
  };
  const found = await root();
  return { root: found, totals: totals(found) };
};
