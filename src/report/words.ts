/** What is said of arms, of the selection and of adapters in the same words on the page, the terminal and in the verdict. */
import type { Arm, ReportDraft } from './model';
import type { ReportedCapability, ReportedSelection } from './capability-model';
import { causesText } from '../domain/rollout';
import { pairsText, partNames } from '../domain/capability';
import { MISSING, valueText, wholeNumber } from './format';

/** Of an arm of which another iteration than the last is evaluated, or that trained beyond the budget; undefined for the others. */
export const evaluatedAt = ({ step, evaluatedRollouts, trainedTo }: Arm): string | undefined => {
  const parts = [
    ...(evaluatedRollouts ? [`evaluated at step ${step}, ${valueText(evaluatedRollouts)} rollouts`] : []),
    ...(trainedTo ? [`trained on to ${valueText(trainedTo)}`] : []),
  ];
  return parts.length > 0 ? parts.join('; ') : undefined;
};

/** `3,072 (trained on to 4,608)`. */
export const trainingText = ({ trainingRollouts, trainedTo }: Arm): string =>
  valueText(trainingRollouts) + (trainedTo === undefined ? '' : ` (trained on to ${valueText(trainedTo)})`);

/** Empty where none failed. */
export const failedPassesText = ({ passes, failedPasses }: ReportedSelection): string[] => {
  const { length } = failedPasses;
  if (length === 0) return [];
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  return [`${length} of ${passes} labeling passes failed and ${length === 1 ? 'is' : 'are'} left out: ${reasons}.`];
};

export const AGREEMENT =
  'Agreement of the passes on the labels: Krippendorff’s alpha over the trajectories, 1 where all passes label alike, 0 as by chance.';

/** `12 of 214 failed trajectories are put down to the environment, 3 to the simulated user`; undefined where none is. */
export const faultsText = ({ faults }: ReportedSelection): string | undefined => {
  const { environment, user } = faults?.trajectories ?? {};
  if (!environment || !user || !(environment.value || user.value)) return undefined;
  const [broken, misled] = [valueText(environment), valueText(user)];
  return `${broken} of ${environment.n} failed trajectories are put down to the environment, ${misled} to the simulated user`;
};

/** Votes out of all passes; what the analyst selects outright has none, nor has a composite. */
export const votesText = (
  { votes, passes, parts, mixed }: Pick<ReportedCapability, 'votes' | 'passes' | 'parts' | 'mixed'>,
  of: string,
): string => (mixed ? 'mixed' : parts ? 'pairs' : passes === 0 ? 'given' : `${votes}${of}${passes}`);

/** `of refuse with tell (62%), ...; 45 of 255 failures need two capabilities at once`; undefined of what is no composite. */
export const compositeText = ({
  parts,
  coverage,
  mixed,
}: Pick<ReportedCapability, 'parts' | 'coverage' | 'mixed'>): string | undefined =>
  mixed
    ? `of ${partNames({ parts }).join(', ')}: on their environments in turns, trained from the sum of their adapters`
    : pairsOf({ parts, coverage });

const pairsOf = ({ parts, coverage }: Pick<ReportedCapability, 'parts' | 'coverage'>): string | undefined =>
  parts &&
  [
    `of ${pairsText(parts)}`,
    coverage.value === null
      ? 'the pairs were given'
      : `${valueText(coverage)} of ${coverage.n} failures need two capabilities at once`,
    'calibrated with, and trained from, the sum of their adapters',
  ].join('; ');

/** `12 rollouts broke and are in no figure of success: 12 BadEnvironment, as at task n-7: ...`; undefined where none did. */
export const brokenText = ({ rollouts }: Pick<ReportDraft, 'rollouts'>): string | undefined => {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return undefined;
  const causes = rollouts.brokenByError.map(({ errorType: type, rollouts: { value }, ...at }) => {
    return { type, ...at, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  return `${wholeNumber(broken)} ${broken === 1 ? 'rollout broke and is' : 'rollouts broke and are'} in no figure of success${why}`;
};

/** What is said of an adapter in a word: `helps`, `no gain`, `helps, gamed`. */
export const adapterVerdict = ({ statement }: Pick<ReportedCapability, 'statement'>): string =>
  statement ? `${statement.verdict.replace('_', ' ')}${statement.gamed ? ', gamed' : ''}` : MISSING;
