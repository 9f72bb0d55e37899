/**
 * Lineage: from a figure, an artifact or a rollout back to the batches of rollouts behind it, by the provenance that every artifact
 * has. Invariant: a tree names each artifact's inputs once; where it comes again it is marked `shared` and not walked again.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { type Figure, figuresIn } from '../domain/figure';
import type { Report } from './model';
import { type Rollout, SUCCESS } from '../domain/rollout';
import { readOutcomes, ROLLOUTS_MEDIA_TYPE } from '../rollout/read';
import { shortSha, spreadText, valueText, wholeNumber } from './format';

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
interface FigureNode {
  kind: 'figure';
  figure: Figure;
  inputs: ArtifactNode[];
}
interface RolloutNode {
  kind: 'rollout';
  rollout: Pick<Rollout, 'key' | 'task' | 'attempt' | 'status'> & { reward?: number };
  inputs: ArtifactNode[];
}
type LineageNode = ArtifactNode | FigureNode | RolloutNode;

interface Lineage {
  root: LineageNode;
  /** Over all batches in the tree; a rollout that several hold is counted once, as scored if one of them has it scored. */
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

/** Every rollout that was met, by key. */
type Met = Map<string, { scored: boolean; success: boolean }>;

const countsOf = (met: Met): RolloutCounts => {
  const counts = { scored: 0, broken: 0, successes: 0 };
  for (const { scored, success } of met.values()) {
    counts[scored ? 'scored' : 'broken'] += 1;
    if (success) counts.successes += 1;
  }
  return counts;
};

const readBatch = async ({ store, ref }: { store: ArtifactStore; ref: ArtifactRef }): Promise<Met> => {
  const met: Met = new Map();
  for (const rollout of await readOutcomes({ store, ref })) {
    const scored = rollout.status === 'scored';
    met.set(rollout.key, { scored, success: scored && rollout.reward >= SUCCESS });
  }
  return met;
};

interface Walk {
  store: ArtifactStore;
  /** By sha256. */
  seen: Set<string>;
  met: Met;
}

const newWalk = (store: ArtifactStore): Walk => ({ store, seen: new Set(), met: new Map() });

const walk = async (at: Walk, ref: ArtifactRef): Promise<ArtifactNode> => {
  const { store, seen, met } = at;
  const node: ArtifactNode = { kind: 'artifact', ref, inputs: [] };
  const shared = seen.has(ref.sha256);
  seen.add(ref.sha256);
  try {
    const { key, producer, inputs } = await store.provenance(ref);
    Object.assign(node, { key, producer });
    if (shared) return { ...node, shared: true };
    if (isBatch({ ref, producer })) {
      const batch = await readBatch({ store, ref });
      node.rollouts = countsOf(batch);
      for (const [rollout, outcome] of batch) if (!met.get(rollout)?.scored) met.set(rollout, outcome);
    }
    for (const input of inputs) node.inputs.push(await walk(at, input));
  } catch (error) {
    node.problem = error instanceof Error ? error.message : String(error);
  }
  return node;
};

const walkAll = async (at: Walk, refs: readonly ArtifactRef[]): Promise<ArtifactNode[]> => {
  const nodes: ArtifactNode[] = [];
  for (const ref of refs) nodes.push(await walk(at, ref));
  return nodes;
};

/** Every artifact of a tree at its first place. */
const artifactsOf = (node: LineageNode): ArtifactNode[] => [
  ...(node.kind === 'artifact' && node.shared === undefined ? [node] : []),
  ...node.inputs.flatMap(artifactsOf),
];

const batchesIn = (root: LineageNode): number =>
  artifactsOf(root).filter(({ rollouts }) => rollouts !== undefined).length;

/** The rollout whose key is `start`, or the one whose key begins so, in the batches behind the report's figures. */
const findRollout = async (search: { at: Walk; report: Report; start: string }): Promise<RolloutNode | undefined> => {
  const { at, report, start } = search;
  const { store } = at;
  const found = new Map<string, { rollout: RolloutNode['rollout']; batch: ArtifactRef }>();
  const refs = figuresIn(report).flatMap((figure) => figure.from);
  const nodes = await walkAll(newWalk(store), refs);
  for (const { ref, rollouts } of nodes.flatMap(artifactsOf)) {
    if (rollouts === undefined) continue;
    for (const rollout of await readOutcomes({ store, ref })) {
      const { key, task, attempt, status } = rollout;
      if (!key.startsWith(start) || found.has(key)) continue;
      const reward = rollout.status === 'scored' ? { reward: rollout.reward } : {};
      found.set(key, { rollout: { key, task, attempt, status, ...reward }, batch: ref });
    }
  }
  const hit = found.get(start) ?? (found.size === 1 ? [...found.values()][0] : undefined);
  if (hit === undefined) return undefined;
  return { kind: 'rollout', rollout: hit.rollout, inputs: await walkAll(at, [hit.batch]) };
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
  const at = newWalk(store);
  const root = async (): Promise<LineageNode> => {
    const figures = report === undefined ? [] : figuresIn(report);
    const figure = figures.find(({ id }) => id === start);
    if (figure !== undefined) return { kind: 'figure', figure, inputs: await walkAll(at, figure.from) };
    const ref = await store.resolve(start);
    if (ref !== undefined) return walk(at, ref);
    const rollout =
      report !== undefined && /^[0-9a-f]{8,}$/.test(start) ? await findRollout({ at, report, start }) : undefined;
    if (rollout !== undefined) return rollout;
    throw new UnknownStartError(start, nearFigures({ start, ids: figures.map(({ id }) => id) }));
  };
  const found = await root();
  return { root: found, totals: { batches: batchesIn(found), ...countsOf(at.met) } };
};

const counts = ({ scored, broken, successes }: RolloutCounts): string =>
  `${wholeNumber(scored)} rollouts scored (${wholeNumber(successes)} successes), ${wholeNumber(broken)} broken`;

/** Keys may be long hashes: enough to recognise one. */
const shortKey = (key: string): string => (key.length <= 60 ? key : `${key.slice(0, 59)}…`);

const artifactLine = ({ ref, producer, key, rollouts, problem }: ArtifactNode): string =>
  [
    shortSha(ref.sha256),
    producer ?? ref.mediaType,
    rollouts === undefined ? undefined : counts(rollouts),
    problem ?? (key === undefined ? undefined : shortKey(key)),
  ]
    .filter((part) => part !== undefined)
    .join('  ');

const rootLine = (node: LineageNode): string => {
  if (node.kind === 'artifact') return artifactLine(node);
  if (node.kind === 'figure') {
    const { figure } = node;
    return [`${figure.id}  ${valueText(figure)}`, spreadText(figure), `n ${figure.n}`]
      .filter((t) => t !== undefined)
      .join(', ');
  }
  const { key, task, attempt, status, reward } = node.rollout;
  return `rollout ${shortKey(key)}  task ${task}, attempt ${attempt}, ${status}${reward === undefined ? '' : `, reward ${reward}`}`;
};

const SHOWN_ABOVE = 4;
const above = (nodes: readonly ArtifactNode[]): string => {
  const named = nodes
    .slice(0, SHOWN_ABOVE)
    .map(({ ref }) => shortSha(ref.sha256))
    .join(', ');
  return `${nodes.length === 1 ? '' : `${nodes.length} artifacts, `}shown above: ${named}${nodes.length > SHOWN_ABOVE ? ', …' : ''}`;
};

const branches = (inputs: readonly ArtifactNode[], indent: string): string[] => {
  const again = inputs.filter((node) => node.shared);
  const entries = [
    ...inputs.filter((node) => !node.shared).map((node) => ({ line: artifactLine(node), inputs: node.inputs })),
    ...(again.length > 0 ? [{ line: above(again), inputs: [] }] : []),
  ];
  return entries.flatMap(({ line, inputs: below }, i) => {
    const last = i === entries.length - 1;
    return [`${indent}${last ? '└─ ' : '├─ '}${line}`, ...branches(below, `${indent}${last ? '   ' : '│  '}`)];
  });
};

/** The tree and its totals, without a last newline. */
export const lineageText = ({ root, totals }: Lineage): string =>
  [
    rootLine(root),
    ...branches(root.inputs, ''),
    `in all: ${totals.batches} batch${totals.batches === 1 ? '' : 'es'}, ${counts(totals)}`,
  ].join('\n');
