/** Views of a page that only a campaign's own machine can show: where it stands now, and what waits for a decision. */
import { type Block, type Blocks, grid, heading, list, paragraph, plot, type View } from '../report/blocks';
import type { ApprovalView } from '../report/build/approval';
import { shareEnd } from '../report/plots';
import { approvalBlocks } from '../report/sections/approval';
import { wholeNumber } from '../report/format';

export interface Live {
  /** `running`, `paused`, `completed`, ... */
  state: string;
  tree: readonly { depth: number; status: string; label: string; detail: string }[];
  notes: readonly string[];
  /** Addresses in Temporal's UI, by workflow. */
  links?: Record<string, string>;
  /** Of each finished step of each training, by what the rollouts were made for. */
  curves: readonly { of: string; purpose: string; step: number; reward: number; n: number }[];
}

export const liveView = ({ state, tree, notes, links = {}, curves }: Live): View => ({
  id: 'live',
  name: 'Live',
  blocks: [
    paragraph(state, 'answer'),
    list(notes, 'bad'),
    grid(
      ['step', 'state', 'what it does'],
      tree.map(({ depth, status, label, detail }) => [`${'· '.repeat(depth)}${label}`, status, detail]),
    ),
    ...curvesBlocks(curves),
    heading('In Temporal'),
    list(Object.entries(links).map(([workflow, to]) => ({ link: workflow, to }))),
  ],
});

/** A chart for each training, as far as it has come. */
function curvesBlocks(curves: Live['curves']): Blocks {
  const trainings = [...new Set(curves.map(({ of }) => of))];
  const high = Math.max(1, ...curves.map(({ step }) => step));
  const drawn = trainings.flatMap((name): Block[] => {
    const own = curves.filter(({ of }) => of === name);
    const lines = [...new Set(own.map(({ purpose }) => purpose))].map((purpose) => ({
      name: purpose,
      points: own
        .filter((one) => one.purpose === purpose)
        .sort((a, b) => a.step - b.step)
        .map(({ step, reward }) => ({ x: step, y: reward })),
    }));
    const marks = lines.flatMap(({ points }, line) =>
      points.map((point) => ({ ...point, line, title: `step ${point.x}: ${point.y.toFixed(2)}` })),
    );
    const rollouts = own.reduce((sum, { n }) => sum + n, 0);
    return [
      heading(name, 3),
      plot(
        {
          ...{ kind: 'lines', label: `Mean reward by step of ${name}`, width: 560, height: 200, lines, marks },
          ...{ x: { label: 'step', high }, y: { high: shareEnd(marks.map(({ y }) => y)) } },
        },
        `Mean reward by step, ${wholeNumber(rollouts)} rollouts so far`,
      ),
    ];
  });
  return drawn.length === 0 ? [] : [heading('Training'), ...drawn];
}

export const approvalView = (waits: readonly ApprovalView[]): View => ({
  id: 'approval',
  name: 'Waits for you',
  blocks: waits.flatMap((view) => [
    ...approvalBlocks(view),
    { kind: 'decision' as const, of: view.waiting.of, names: view.waiting.names },
  ]),
});
