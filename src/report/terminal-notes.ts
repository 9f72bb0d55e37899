/** What is said under the tables on a terminal: of the selection, of single capabilities, of what language models cost. */
import type { Report } from '../domain/report';
import type { ReportedCapability, ReportedSelection } from '../domain/reported-capability';
import { hintsText } from './calibrations';
import { spentText } from './language-model-cost';
import { failedPassesText, faultsText, gamedText } from './words';

export const selectionNotes = (selection: ReportedSelection): string[] => {
  const { decision } = selection;
  return [
    ...failedPassesText(selection),
    ...(decision === undefined ? [] : [`the selected ones were ${decision}`]),
    ...[faultsText(selection) ?? []].flat(),
  ];
};

export const capabilityNotes = ({ name, status, reason, validation, calibration }: ReportedCapability): string[] => {
  const gamed = gamedText({ validation });
  const hints = calibration?.accepted ? hintsText(calibration) : undefined;
  return [
    ...(status !== 'trained' && reason !== undefined ? [`${name}: ${reason}`] : []),
    ...(hints === undefined ? [] : [`${name}: accepted ${hints}`]),
    ...(gamed === undefined ? [] : [`${name} is gamed:`, `  ${gamed}`]),
  ];
};

export const costNotes = ({ cost }: Report): string[] =>
  cost?.languageModel === undefined ? [] : [`language models: ${spentText(cost.languageModel)}`];
