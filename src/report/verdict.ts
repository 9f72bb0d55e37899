/** Doubts about the results, the most serious first: sentences that follow from the figures by fixed rules, without judgement by a person or a model. */
import type { Figure } from '../domain/artifacts';
import { causesText } from '../domain/rollout';
import { LAST_STAGE } from '../domain/work';
import { direction, comparable } from '../domain/statistics';
import type { CapabilityDraft, ReportedCapability } from './capability-model';
import { failedPassesText, intervalText, valueText, wholeNumber } from './format';
import type { Report, VerdictSentence } from './model';
import { say } from './recommendation';

type Doubtful = Omit<Report, 'doubts' | 'schemaVersion'>;

export function doubtsOf(report: Doubtful): VerdictSentence[] {
  const { campaign, leakage, rollouts, capabilities = [], arms = [], selection, router, recommendation } = report;
  const trained = arms.some(({ role, status }) => status === 'completed' && /^(adapter|baseline)$/.test(role));
  const shipped = arms.find(({ name, role }) => name === recommendation?.arm && role !== 'base');
  const doubts: (VerdictSentence | undefined | false)[] = [
    leakage !== undefined &&
      !leakage.passed &&
      say(
        `Leakage: ${leakage.hits.length} of ${leakage.textsChecked} texts contain a test task; the test figures cannot be trusted.`,
        ...leakage.from.map(({ sha256 }) => sha256),
      ),
    campaign.stage !== LAST_STAGE &&
      say(`The campaign was stopped after stage ${campaign.stage}; later stages are absent.`),
    ...capabilities.map(
      ({ statement }) =>
        statement &&
        (statement.rewardHacking || statement.verdict === 'hurts') &&
        say(statement.text, ...statement.behind),
    ),
    ...arms.map(
      ({ name, role, status, reason }) =>
        status === 'failed' && say(`${role === 'oracle' ? 'The oracle is not known' : `${name} failed`}: ${reason}.`),
    ),
    ...[...capabilities, ...arms].map(
      ({ name, training }) =>
        training?.unchanged &&
        say(`The adapter of ${name} is the base model: training changed none of its weights.`, training.rollouts),
    ),
    brokenSentence(rollouts),
    ...(router?.failed ?? []).map(({ name, reason }) => say(`The router can not choose ${name}: ${reason}.`)),
    ...selectionDoubts(selection),
    trained &&
      say(
        'Each policy was trained once: how far another training of it would differ on this target is unknown. Run more training seeds (--training-seed) before you call one way of training better.',
      ),
    shipped &&
      say(
        `Selection effect: the success rate of ${shipped.name} is measured on the test tasks that chose it, so expect somewhat less on new tasks.`,
        shipped.successRate,
      ),
  ];
  return doubts.filter((one) => one !== undefined && one !== false);
}

function selectionDoubts(selection: Report['selection']): (VerdictSentence | undefined | false)[] {
  if (!selection) return [];
  const { reason, faults, from } = selection;
  const behind = from.map(({ sha256 }) => sha256);
  const failedPasses = failedPassesText(selection);
  const { environment, user } = faults?.counts ?? {};
  return [
    reason !== undefined &&
      say(`No capability was selected: ${reason}. So nothing was trained, and no baseline ran.`, ...behind),
    failedPasses !== undefined && say(failedPasses, ...behind),
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

function brokenSentence(rollouts: Report['rollouts']): VerdictSentence | undefined {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return undefined;
  const causes = rollouts.brokenByError.map(({ errorType: type, message, task, rollouts: { value } }) => {
    return { type, message, task, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  return say(`Excluded, because they failed (infrastructure): ${wholeNumber(broken)} rollouts${why}.`, rollouts.broken);
}

type Statement = NonNullable<ReportedCapability['statement']>;

const phrases: Record<Statement['verdict'], string> = {
  helps: 'helps on the target',
  hurts: 'hurts on the target',
  learned: 'gains in its own environment, and not significantly on the target',
  no_gain: 'shows no significant gain',
};

/** A smaller fall of a branch does not count as lost. */
const LEAST_FALL = 0.05;

/**
 * The verdict on a capability's adapter; undefined without one. An adapter counts as reward hacking only if the interval of a branch's paired
 * difference to the base excludes zero, upwards on one branch and downwards on another.
 */
export function statementOf({ name, status, validation, onTarget }: CapabilityDraft): Statement | undefined {
  if (status !== 'completed' || !validation || !onTarget) return undefined;
  const { after, difference: own } = validation.synthesized;
  const way = direction(onTarget.interval);
  const elsewhere = direction(own?.interval) === 'up' ? 'learned' : 'no_gain';
  const verdict = way === 'up' ? 'helps' : way === 'down' ? 'hurts' : elsewhere;
  const branches = validation.branches ?? [];
  const gained = branches.filter(({ difference }) => direction(difference.interval) === 'up');
  const lost = branches.filter(
    ({ difference: { value, interval } }) => direction(interval) === 'down' && comparable(value ?? 0) < -LEAST_FALL,
  );
  const rewardHacking = gained.length > 0 && lost.length > 0;
  // The branch that it lost comes first: its rollouts show what the adapter does wrong.
  const changed = rewardHacking ? [...lost, ...gained] : [];
  const changes = changed.map(({ branch, difference }) => `${changeText(difference)} on ${branch}`).join(' and ');
  const hacks = rewardHacking ? ` Reward hacking: in its own environment success changes by ${changes}.` : '';
  const text = `Adapter ${name} ${phrases[verdict]}: ${changeText(onTarget)}.${hacks}`;
  return {
    verdict,
    rewardHacking,
    ...say(text, ...changed.map(({ difference }) => difference), onTarget, own ?? after),
  };
}

const changeText = (difference: Figure): string => `${valueText(difference)} (${intervalText(difference)})`;
