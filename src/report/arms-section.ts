/** The arms on the page: test success, what each has cost, how it grew with the rollouts spent, and why its rollouts ended. */
import type { Figure } from '../domain/figure';
import type { Arm, Report } from './model';
import { foldSums } from './format';
import { figureView } from './figure-view';
import { markup, type Markup } from './markup';
import { TEST, testText } from './recommendation';
import { armsPlot } from './plots/arms';
import { budgetPlot } from './plots/budget';
import { plotFigure, table } from './sections';
import { evaluatedAt } from './words';

export const armsSection = ({ arms, budget, comparisons = [], campaign }: Report): Markup | undefined => {
  if (arms === undefined) return undefined;
  const view = (figure: Figure | undefined): Markup => figureView({ figure, campaign: campaign.name });
  const { shown, folded } = foldSums(arms);
  const bound = arms.some(({ role }) => role === 'bound');
  return markup`<h2>Arms on test tasks</h2>
${plotFigure({
  body: armsPlot({ arms: shown, campaign: campaign.name }),
  caption: `Share of test tasks solved, with its interval.${bound ? ' The diamond is a bound, not a policy: tasks that any of the router’s options alone solves.' : ''}`,
  campaign: campaign.name,
})}
${armsTable(shown, view)}
${folded.length > 0 && markup`<details class="seen"><summary>${folded.length} more sums of adapters</summary>${armsTable(folded, view)}</details>`}
<p class="small quiet">Training rollouts: those spent to choose what is evaluated from, for a baseline within what the adapters spent together. All rollouts: whatever was rolled out to come to it, that is training,
calibration and held-out evaluations, and for the routed policy also base rollouts and the router’s outcome matrix. Test rollouts are
nobody’s.</p>
${
  comparisons.length > 0 &&
  markup`<h3>Paired differences between arms</h3>${table({
    head: ['arm', 'minus', 'difference', 'on single tasks', 'over trainings too', 'standing'],
    rows: comparisons.map(({ arm, against, difference, acrossTrainings, standing }) => [
      arm,
      against,
      view(difference),
      testText(difference),
      view(acrossTrainings),
      standing.replace('_', ' '),
    ]),
  })}<p class="small quiet">p: ${TEST}.</p>`
}
<h3>Success against training rollouts</h3>
${plotFigure({
  body: budgetPlot({ arms: shown, ...(budget && { budget }), campaign: campaign.name }),
  caption:
    'Open: held-out train tasks of the target. Filled: test tasks, with the value. Both stand at the training rollouts that were spent.',
  ...(budget && { from: budget.from }),
  campaign: campaign.name,
})}
${budget !== undefined && markup`<div class="small">training rollouts of all adapters, trained to their last step: what baselines are held to ${view(budget)}</div>`}
${endings(arms, view)}`;
};

type View = (figure: Figure | undefined) => Markup;

const armsTable = (arms: readonly Arm[], view: View): Markup =>
  table({
    head: [
      'arm',
      'what',
      'training rollouts',
      'all rollouts',
      'tasks × trials',
      'success',
      'difference to base',
      'status',
    ],
    rows: arms.map((arm) => [
      arm.name,
      whatIs(arm),
      training(arm, view),
      view(arm.allRollouts),
      `${arm.tasks} × ${arm.trials}`,
      view(arm.successRate),
      view(arm.differenceToBase),
      arm.status === 'failed' ? markup`<span class="bad">failed: ${arm.reason}</span>` : 'evaluated',
    ]),
  });

const whatIs = ({ role, kind, routable, conversations, sameAs, builtOn = [] }: Arm): Markup => {
  const more = `${conversations === undefined ? '' : `, ${conversations} conversations`}${routable ? ', routable' : ''}`;
  const of = builtOn.length > 0 && markup`<div class="quiet small">of ${builtOn.join(', ')}</div>`;
  const same = sameAs !== undefined && markup`<div class="quiet small">the same policy as ${sameAs}</div>`;
  return markup`${role === 'baseline' ? `baseline ${kind ?? ''}${more}` : role}${of}${same}`;
};

const training = (arm: Arm, view: View): Markup => {
  const at = evaluatedAt(arm);
  return markup`${view(arm.trainingRollouts)}${at !== undefined && markup`<div class="quiet small">${at}</div>${arm.evaluatedRollouts && view(arm.evaluatedRollouts)}${arm.trainedTo && view(arm.trainedTo)}`}`;
};

const endings = (arms: readonly Arm[], view: View): Markup | undefined => {
  const ended = arms.flatMap(({ name, stopReasons }) => (stopReasons === undefined ? [] : [{ name, stopReasons }]));
  const reasons = [...new Set(ended.flatMap(({ stopReasons }) => stopReasons.map(({ reason }) => reason)))];
  if (reasons.length === 0) return undefined;
  return markup`<h3>Why test rollouts ended</h3>${table({
    head: ['arm', ...reasons.map((reason) => reason.replaceAll('_', ' '))],
    rows: ended.map(({ name, stopReasons }) => [
      name,
      ...reasons.map((reason) => view(stopReasons.find((one) => one.reason === reason)?.rollouts)),
    ]),
  })}`;
};
