/** What waits for approval, as sections. */
import type { ApprovalView, CapabilityView, EnvironmentView } from '../build/approval';
import { percent } from '../format';
import { type Block, type Blocks, details, heading, list, paragraph } from '../blocks';
import { terminalText } from '../terminal';
import { citationBlock } from './evidence';

export const approvalText = (view: ApprovalView): string => terminalText(approvalBlocks(view));

export const approvalBlocks = (view: ApprovalView): Blocks =>
  'capabilities' in view ? view.capabilities.flatMap(capabilityBlocks) : environmentBlocks(view.environment);

const capabilityBlocks = (view: CapabilityView): Block[] => [
  heading(view.candidate.name),
  paragraph(view.candidate.definition),
  paragraph(votesText(view), 'quiet'),
  ...view.citations.map((citation) => citationBlock(citation, { open: true })),
];

/** `9 of 10 votes, Cov 0.42 ± 0.05, Delta 0.31 ± 0.04`. */
function votesText({ votes, passes, coverage, delta }: CapabilityView): string {
  if (!coverage || !delta) return 'selected by the analyst outright: nothing was labeled';
  const spread = ({ mean, std }: typeof coverage) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return `${votes} of ${passes} votes, Cov ${spread(coverage)}, Delta ${spread(delta)}`;
}

function environmentBlocks(view: EnvironmentView): Blocks {
  const { candidate, round, module, source, calibration, rollouts, earlier } = view;
  return [
    heading(`Environment of ${candidate.name}, round ${round}`),
    paragraph(candidate.definition),
    list([
      `Module: ${module.sha256}`,
      ...(calibration ? [[calibrationText(calibration), { lineage: rollouts ? [rollouts] : [] }]] : []),
      ...(calibration?.judged ? [`Judged: ${calibration.judged.text}`] : []),
      ...earlier.map((one) => `Round ${one.round}: ${one.summary}`),
    ]),
    ...details(heading('Source of the module', 3), { kind: 'source', text: source }),
  ];
}

/** The base model's mean reward and the like, which must be within the bands. */
function calibrationText(calibration: NonNullable<EnvironmentView['calibration']>): string {
  const { meanReward, successRate, allZero, allSuccess, informative } = calibration;
  const shares = { success: successRate, 'all-zero': allZero, 'all-success': allSuccess, informative };
  const parts = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return `Base model: ${[`mean reward ${meanReward.toFixed(2)}`, ...parts].join(', ')}`;
}
