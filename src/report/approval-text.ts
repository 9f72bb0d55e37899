/** Formats a pending approval as short text. The page shows the conversations and the module. */
import type { ApprovalView } from './capability-model';
import { measuredText } from './format';
import { clip, fittingWidth } from './terminal';

export function approvalText(view: ApprovalView, columns?: number): string {
  const lines = 'selection' in view ? selectedLines(view.selection) : roundLines(view.environment);
  return lines.flatMap((line) => clip(line, fittingWidth(columns), 4)).join('\n');
}

const selectedLines = ({ candidates }: Extract<ApprovalView, { selection: object }>['selection']): string[] =>
  candidates
    .filter(({ selected }) => selected)
    .flatMap(({ name, definition, votes, passes, coverage, delta }) => [
      `${name}: ${definition}`,
      coverage && delta
        ? `${votes} of ${passes} votes, coverage ${measuredText(coverage)}, delta ${measuredText(delta)}`
        : 'selected by the analyst outright: nothing was labeled',
    ]);

const roundLines = ({ candidate, rounds }: Extract<ApprovalView, { environment: object }>['environment']): string[] => [
  `environment of ${candidate.name}: ${candidate.definition}`,
  ...rounds.map(({ round, module, selfTest, calibration, decision }) => {
    const { meanReward, successRate, verdict, judged, reasons = [] } = calibration ?? {};
    const measured = meanReward &&
      successRate && [`mean reward ${measuredText(meanReward)}`, `success ${measuredText(successRate)}`];
    const parts = [verdict, judged, ...(measured ?? []), ...selfTest.findings, ...reasons, decision];
    return `round ${round}, module ${module.sha256.slice(0, 8)}: ${parts.filter(Boolean).join('; ')}`;
  }),
];
