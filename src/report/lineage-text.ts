/** Lineage as an indented tree. Artifacts that stand further up are one line together, so that long trainings stay readable. */
import { shortSha, spreadText, valueText, wholeNumber } from './format';
import type { ArtifactNode, Lineage, LineageNode, RolloutCounts } from './lineage';

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
