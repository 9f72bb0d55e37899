/** What waits for approval, as sections. */
import type { ApprovalView, CapabilityView, EnvironmentView } from '../build/approval';
import { calibrationText, votesText } from '../approval-text';
import { type Block, type Blocks, details, heading, list, paragraph } from '../blocks';
import { citationBlock } from './evidence';

export const approvalBlocks = (view: ApprovalView): Blocks =>
  'capabilities' in view ? view.capabilities.flatMap(capabilityBlocks) : environmentBlocks(view.environment);

const capabilityBlocks = (view: CapabilityView): Block[] => [
  heading(view.candidate.name),
  paragraph(view.candidate.definition),
  paragraph(votesText(view), 'quiet'),
  ...view.citations.map((citation) => citationBlock(citation, { open: true })),
];

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
