/** Views of a page that only a campaign's own machine can show: where it stands now, and what waits for a decision. */
import { type Block, type Blocks, grid, heading, list, paragraph, plot, type View } from '../report/blocks';
import type { ApprovalView } from '../report/build/approval';
import { dollarsText, wholeNumber } from '../report/format';
import { approvalBlocks } from '../report/sections/approval';
import { rewardPlot } from '../report/sections/run';
import type { Curves } from './curves';

export interface Live {
  /** `running`, `completed`, ... */
  state: string;
  /** All runs of the campaign in one line of time, where it was started more than once. */
  runs?: string | undefined;
  tree: readonly { depth: number; status: string; label: string; detail: string }[];
  notes: readonly string[];
  /** Addresses in Temporal's UI, by workflow. */
  links?: Record<string, string>;
  curves: Curves;
  /** Payments for language models. */
  spent: readonly { dollars?: number | undefined }[];
}

export const liveView = ({ state, runs, tree, notes, links = {}, curves, spent }: Live): View => ({
  id: 'live',
  name: 'Live',
  blocks: [
    paragraph(state, 'answer'),
    ...(runs ? [paragraph(runs)] : []),
    totals(curves, spent),
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
function trainingBlocks({ trainings }: Curves): Blocks {
  const high = Math.max(1, ...trainings.flatMap(({ points }) => points.map(({ step }) => step)));
  const drawn = trainings.flatMap(({ name, heldOut, ...curve }): Block[] => {
    const marks = heldOut.map(({ step, reward }) => {
      const title = `held-out mean reward at step ${step}: ${reward.toFixed(2)}`;
      return { x: step, y: reward, line: 0, open: true, title };
    });
    return [
      heading(name, 3),
      plot(rewardPlot({ name, curve, marks, high }), 'Line: training rollouts. Marks: held out.'),
    ];
  });
  return drawn.length === 0 ? [] : [heading('Training'), ...drawn];
}

/** What was played and paid so far. */
function totals({ rollouts }: Curves, spent: Live['spent']): Block {
  const paid = spent.flatMap(({ dollars }) => dollars ?? []);
  const dollars = paid.length > 0 ? paid.reduce((sum, one) => sum + one, 0) : undefined;
  const facts: [string, number | undefined, (count: number) => string][] = [
    ['rollouts', rollouts?.scored, wholeNumber],
    ['broken', rollouts?.broken, wholeNumber],
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
