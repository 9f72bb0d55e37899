/** What is said under the tables on a terminal: of the selection, of single capabilities, of what language models cost. */
import type { Arm, Report } from './model';
import type { ReportedCapability, ReportedSelection } from './capability-model';
import { hintsText, noSumsText } from './adapters';
import { MISSING, percent, spreadText, valueText } from './format';
import { spentText } from './language-model-cost';
import { compositeText, failedPassesText, faultsText } from './words';

export const selectionNotes = (selection: ReportedSelection): string[] => {
  const { decision, noComposite } = selection;
  return [
    ...failedPassesText(selection),
    ...(decision === undefined ? [] : [`the selected ones were ${decision}`]),
    ...[faultsText(selection) ?? []].flat(),
    ...(noComposite === undefined ? [] : [`no composite: ${noComposite}`]),
  ];
};

/** `router: ridge, cross-validated 80.5% against 78.0% of a+b alone; regret on test +2.5 pt (+0.5 to +5.0); 0.21 ms a conversation`. */
export const routerNotes = ({ router, capabilities }: Report): string[] => {
  if (router === undefined) return [];
  const { crossValidation, helps, constant, regret, latency } = router;
  const noSums = noSumsText(router, capabilities);
  const { routed, bestSingle, forms } = crossValidation;
  const kept = forms?.find((one) => one.kept)?.form ?? router.kind;
  const scored = `cross-validated ${valueText(routed)}`;
  const parts = [
    helps
      ? `${kept}, ${scored} against ${valueText(bestSingle.successRate)} of ${bestSingle.option} alone`
      : `everything to ${constant ?? bestSingle.option}, ${scored}`,
    ...(regret ? [`regret on test ${valueText(regret)} (${spreadText(regret) ?? MISSING})`] : []),
    ...(latency ? [`${valueText(latency)} a conversation`] : []),
  ];
  return [`router: ${parts.join('; ')}`, ...(noSums === undefined ? [] : [`no sums of adapters: ${noSums}`])];
};

/** Sums that have no line in the table. */
export const foldedNotes = (folded: readonly Arm[]): string[] => {
  const rates = folded.flatMap(({ successRate }) => successRate?.value ?? []);
  if (folded.length === 0) return [];
  const between = [Math.min(...rates), Math.max(...rates)].map(percent).join(' to ');
  return [`${folded.length} more sums of adapters${rates.length > 0 ? `, ${between}` : ''}: all of them in the page`];
};

export const capabilityNotes = (capability: ReportedCapability): string[] => {
  const { name, status, reason, statement, calibration } = capability;
  const composite = compositeText(capability);
  const hints = calibration?.accepted ? hintsText(calibration) : undefined;
  return [
    ...(composite === undefined ? [] : [`${name}: ${composite}`]),
    ...(status !== 'trained' && reason !== undefined ? [`${name}: ${reason}`] : []),
    ...(hints === undefined ? [] : [`${name}: accepted ${hints}`]),
    ...(statement === undefined ? [] : [statement.text]),
  ];
};

export const costNotes = ({ cost }: Report): string[] =>
  cost?.languageModel === undefined ? [] : [`language models: ${spentText(cost.languageModel)}`];
