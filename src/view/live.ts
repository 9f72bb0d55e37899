/** Views of a page that only a campaign's own machine can show: where it stands now, and what waits for a decision. */
import { type Block, type Blocks, grid, heading, list, paragraph, plot, type View } from '../report/blocks';
import type { ApprovalView } from '../report/build/approval';
import { dollarsText, wholeNumber } from '../report/format';
import { approvalBlocks } from '../report/sections/approval';
import { rewardPlot } from '../report/sections/run';
import type { Curve } from './curves';

export interface Live {
  /** `running`, `paused`, `completed`, ... */
  state: string;
  tree: readonly { depth: number; status: string; label: string; detail: string }[];
  notes: readonly string[];
  /** Addresses in Temporal's UI, by workflow. */
  links?: Record<string, string>;
  curves: readonly Curve[];
}

const REWARD = 'train/reward';

export const liveView = ({ state, tree, notes, links = {}, curves }: Live): View => ({
  id: 'live',
  name: 'Live',
  blocks: [
    paragraph(state, 'answer'),
    totals(curves),
    list(notes, 'bad'),
    grid(
      ['step', 'state', 'what it does'],
      tree.map(({ depth, status, label, detail }) => [`${'· '.repeat(depth)}${label}`, status, detail]),
    ),
    ...trainingBlocks(curves),
    heading('In Temporal'),
    list(Object.entries(links).map(([workflow, to]) => ({ link: workflow, to }))),
  ],
});

/** A chart for each training, as far as it has come. */
function trainingBlocks(curves: readonly Curve[]): Blocks {
  const trainings = curves.filter(({ rows }) => rows.some(({ values }) => REWARD in values));
  const high = Math.max(1, ...trainings.flatMap(({ rows }) => rows.map(({ step }) => step)));
  const drawn = trainings.flatMap(({ run, rows }): Block[] => {
    const pointsOf = (tag: string) =>
      rows.flatMap(({ step, values: { [tag]: reward } }) => (reward === undefined ? [] : [{ step, reward }]));
    const tags = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))].sort();
    const branches = tags.flatMap((tag) =>
      tag.startsWith(`${REWARD}/`) ? [{ branch: tag.slice(REWARD.length + 1), points: pointsOf(tag) }] : [],
    );
    const marks = pointsOf('held_out/reward').map(({ step, reward }) => {
      const title = `held-out mean reward at step ${step}: ${reward.toFixed(2)}`;
      return { x: step, y: reward, line: 0, open: true, title };
    });
    const curve = { points: pointsOf(REWARD), branches };
    return [
      heading(run, 3),
      plot(rewardPlot({ name: run, curve, marks, high }), 'Line: training rollouts. Marks: held out.'),
    ];
  });
  return drawn.length === 0 ? [] : [heading('Training'), ...drawn];
}

/** What was played and paid so far. */
function totals(curves: readonly Curve[]): Block {
  const last = (run: string): Record<string, number> =>
    curves.find((one) => one.run === run)?.rows.at(-1)?.values ?? {};
  const { 'rollouts/scored': scored, 'rollouts/broken': broken } = last('all-rollouts');
  const { 'costs/dollars': dollars } = last('all-costs');
  const facts: [string, number | undefined, (count: number) => string][] = [
    ['rollouts', scored, wholeNumber],
    ['broken', broken, wholeNumber],
    ['language models', dollars, dollarsText],
  ];
  return {
    kind: 'facts',
    facts: facts.flatMap(([name, count, text]) => (count === undefined ? [] : [{ name, value: text(count) }])),
  };
}

export const approvalView = (waits: readonly ApprovalView[]): View => ({
  id: 'approval',
  name: 'Waits for you',
  blocks: waits.flatMap((view) => [
    { kind: 'decision' as const, of: view.waiting.of, names: view.waiting.names },
    ...approvalBlocks(view),
  ]),
});
