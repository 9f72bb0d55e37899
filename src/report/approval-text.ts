/** What waits for approval as short text: the candidates and how they were judged. The page shows the conversations and the module. */
import type { ApprovalView, CapabilityView, EnvironmentView } from './build/approval';
import { percent } from './format';
import { clip, fittingWidth } from './terminal';

export function approvalText(view: ApprovalView, columns?: number): string {
  const lines =
    'capabilities' in view ? view.capabilities.flatMap(capabilityLines) : environmentLines(view.environment);
  return lines.flatMap((line) => clip(line, fittingWidth(columns), 4)).join('\n');
}

const capabilityLines = (view: CapabilityView): string[] => [
  `${view.candidate.name}: ${view.candidate.definition}`,
  votesText(view),
];

const environmentLines = ({ candidate, round, module, calibration, earlier }: EnvironmentView): string[] => [
  `environment of ${candidate.name}, round ${round}: module ${module.sha256.slice(0, 8)}`,
  candidate.definition,
  ...(calibration ? [calibrationText(calibration)] : []),
  ...(calibration?.judged ? [`Judged: ${calibration.judged.text}`] : []),
  ...earlier.map((one) => `Round ${one.round}: ${one.summary}`),
];

/** `9 of 10 votes, coverage 0.42 ± 0.05, delta 0.31 ± 0.04`. */
function votesText({ votes, passes, coverage, delta }: CapabilityView): string {
  if (!coverage || !delta) return 'selected by the analyst outright: nothing was labeled';
  const spread = ({ mean, std }: typeof coverage) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return `${votes} of ${passes} votes, coverage ${spread(coverage)}, delta ${spread(delta)}`;
}

/** The base model's mean reward and the like, which must be within the bands. */
function calibrationText(calibration: NonNullable<EnvironmentView['calibration']>): string {
  const { meanReward, successRate, allZero, allSuccess, informative } = calibration;
  const shares = { success: successRate, 'all-zero': allZero, 'all-success': allSuccess, informative };
  const parts = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return `Base model: ${[`mean reward ${meanReward.toFixed(2)}`, ...parts].join(', ')}`;
}
