/** What is doubtful: plain sentences that follow from the figures by fixed rules, the most serious first; nothing here is judged by a person or a model. */
import { causesText } from '../domain/rollout';
import { LAST_STAGE } from '../domain/work';
import { valueText, wholeNumber } from './format';
import type { Report, VerdictSentence } from './model';
import { say } from './recommendation';

type Doubtful = Omit<Report, 'verdict' | 'schemaVersion'>;

/** Krippendorff: conclusions from data below it are not even tentative. */
const LEAST_AGREEMENT = 0.667;

export function doubtsOf(report: Doubtful): VerdictSentence[] {
  const { campaign, leakage, rollouts, capabilities = [], arms = [], selection, router, recommendation } = report;
  const named = (is: (one: (typeof capabilities)[number]) => boolean) => {
    const those = capabilities.filter(is);
    return those.length > 0 && { names: those.map(({ name }) => name).join(', '), those };
  };
  const hacking = named(({ statement }) => statement?.rewardHacking === true);
  const hurt = named(({ statement }) => statement?.verdict === 'hurts');
  const behind = (of: typeof hacking) => (of ? of.those.flatMap(({ statement }) => statement?.behind ?? []) : []);
  const leaks = leakage?.hits.length === 1 ? '1 text contains' : `${leakage?.hits.length} texts contain`;
  const errors = router?.errors?.value ?? 0;
  const trained = arms.some(({ role, status }) => status === 'completed' && /^(adapter|baseline)$/.test(role));
  const shipped = arms.find(({ name, role }) => name === recommendation?.arm && role !== 'base');
  const doubts: (VerdictSentence | undefined | false)[] = [
    leakage !== undefined &&
      !leakage.passed &&
      say(
        `Leakage: ${leaks} a test task; the test figures cannot be trusted.`,
        ...leakage.from.map(({ sha256 }) => sha256),
      ),
    campaign.stage !== LAST_STAGE &&
      say(`The campaign was stopped after stage ${campaign.stage}; later stages are absent.`),
    hacking &&
      say(
        `Reward hacking: ${hacking.names}. Such an adapter gains on one branch of its own environment and loses on the other: it does the same everywhere.`,
        ...behind(hacking),
      ),
    hurt && say(`The adapter of ${hurt.names} makes the target worse.`, ...behind(hurt)),
    ...arms.map(
      ({ name, role, status, reason }) =>
        status === 'failed' && say(`${role === 'oracle' ? 'The oracle is not known' : `${name} failed`}: ${reason}.`),
    ),
    brokenSentence(rollouts),
    errors > 0 && say(`The router failed on ${wholeNumber(errors)} test rollouts.`, router?.errors),
    ...(router?.failed ?? []).map(({ name, reason }) => say(`The router can not choose ${name}: ${reason}.`)),
    ...selectionDoubts(selection),
    trained &&
      say(
        'Each policy was trained once: how far another training of it would differ on this target is unknown. Run more training seeds (--training-seed 1,2,3) before you call one way of training better.',
      ),
    shipped &&
      say(
        `Selection effect: the success rate of ${shipped.name} is measured on the test tasks that chose it, so expect somewhat less on new tasks.`,
        shipped.successRate,
      ),
  ];
  return doubts.filter((one) => one !== undefined && one !== false);
}

type Selection = NonNullable<Report['selection']>;

function selectionDoubts(selection: Report['selection']): (VerdictSentence | undefined | false)[] {
  if (!selection) return [];
  const { candidates, reason, faults, from } = selection;
  const behind = from.map(({ sha256 }) => sha256);
  const failedPasses = failedPassesText(selection);
  const low = candidates.flatMap(({ name, selected, agreement }) =>
    selected && agreement && agreement.value !== null && agreement.value < LEAST_AGREEMENT ? [{ name, agreement }] : [],
  );
  const disagreed = low.map(({ name, agreement }) => `${name} (${valueText(agreement)}, n ${agreement.n})`).join(', ');
  const { environment, user } = faults?.trajectories ?? {};
  return [
    reason !== undefined && say(`No capability was selected: ${reason}.`, ...behind),
    failedPasses !== undefined && say(failedPasses, ...behind),
    low.length > 0 &&
      say(
        `The labeling passes agree little on ${disagreed}: Krippendorff's alpha is below ${LEAST_AGREEMENT}.`,
        ...low.map(({ agreement }) => agreement),
      ),
    environment &&
      user &&
      Boolean(environment.value || user.value) &&
      say(
        `${valueText(environment)} of ${environment.n} failed trajectories are put down to the environment, ${valueText(user)} to the simulated user.`,
        environment,
        user,
      ),
  ];
}

/** Undefined where none failed. */
export function failedPassesText({ passes, failedPasses }: Selection): string | undefined {
  const { length } = failedPasses;
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  const are = length === 1 ? 'is' : 'are';
  return length === 0 ? undefined : `${length} of ${passes} labeling passes failed and ${are} left out: ${reasons}.`;
}

/** `12 rollouts failed for infrastructure reasons and are excluded: 12 BadEnvironment, as at task n-7: ...`. */
function brokenSentence(rollouts: Report['rollouts']): VerdictSentence | undefined {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return undefined;
  const causes = rollouts.brokenByError.map(({ errorType: type, message, task, rollouts: { value } }) => {
    return { type, message, task, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  const which =
    broken === 1
      ? 'rollout failed for an infrastructure reason and is'
      : 'rollouts failed for infrastructure reasons and are';
  return say(`${wholeNumber(broken)} ${which} excluded${why}.`, rollouts.broken);
}
