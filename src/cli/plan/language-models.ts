/**
 * What language models will be asked, and what that costs: chunks of compacted trajectories, passes over all of them, rounds of every capability,
 * reflections within an arm's rollouts, and the words of users and judges. Every assumption is a constant here.
 */
import { armName, type Campaign } from '../../domain/campaign';
import { costOf, type Price, tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import type { Purpose } from '../../domain/rollout';
import { describeSpec } from '../../environments/open';
import { withPlugins } from '../../plugins';
import type { Registry } from '../../registry';
import { type PlannedWork, product, type Range, range, type Rate, sum } from './estimate';

/** Of the prompts' own words, and of policy and tools where the target can't be asked. */
const PROMPT_TOKENS = 2_000;
const TARGET_TOKENS = 3_000;
/** Examples of modules, failures and their contrast, what the module before was found to be. */
const ENVIRONMENT_PROMPT: Range = { low: 10_000, high: 40_000 };
/** Replies, with what is thought before them. */
const DISCOVERY_REPLY: Range = { low: 2_000, high: 12_000 };
const LABEL_TOKENS: Range = { low: 30, high: 90 };
const MODULE_REPLY: Range = { low: 6_000, high: 25_000 };
const ATTACK_REPLY: Range = { low: 1_000, high: 6_000 };
/** Of trajectories that are shown less compacted than to an analyst. */
const LESS_COMPACT: Range = { low: 1, high: 3 };
const PROMPT_REPLY: Range = { low: 500, high: 4_000 };
/** Of a rollout: how often the user speaks and the judge is asked, and what they are shown and say each time. */
const PARTNERS = {
  user: { asked: { low: 2, high: 12 }, prompt: { low: 800, high: 5_000 }, reply: { low: 15, high: 150 } },
  judge: { asked: { low: 1, high: 5 }, prompt: { low: 1_000, high: 8_000 }, reply: { low: 20, high: 300 } },
};
/** Of the questions, those that are asked again to mend the answer: in the upper end alone. */
const REPAIRED = 0.25;

interface PlanInput {
  campaign: Campaign;
  work: Pick<PlannedWork, 'capabilities' | 'arms' | 'purposes'>;
  description?: EnvironmentDescription | undefined;
  /** Tokens of one base rollout as it is shown. */
  trajectory: Rate;
  kinds?: Registry;
}

interface Question {
  field: string;
  step: 'discovery' | 'labels' | 'environments' | 'reflection' | 'rollouts';
  model: { price?: Price | undefined };
  requests: Range;
  promptTokens: Range;
  completionTokens: Range;
  /** Share of the prompts that the endpoint's cache may hold. */
  cached?: number;
  repaired?: number;
}

export type LanguageModelPlan = ReturnType<typeof plannedQuestions>;

/** `total.dollars` is absent where a model has no price, `budget` (how the file's compares) where no model is asked. */
export function plannedQuestions(o: PlanInput) {
  const questions = [...ofAnalyst(o), ...ofSynthesizer(o), ...ofArms(o), ...ofPartners(o)].map(priced);
  const dollars = questions.flatMap((one) => one.dollars ?? []);
  const total = {
    requests: sum(...questions.map(({ requests }) => requests)),
    tokens: sum(...questions.map(({ promptTokens, completionTokens }) => sum(promptTokens, completionTokens))),
    ...(dollars.length === questions.length && { dollars: sum(...dollars) }),
  };
  const budget = questions.length > 0 ? { budget: budgetText(o.campaign.budget, total) } : {};
  return { questions, total, trajectory: o.trajectory, ...budget };
}

const fixedTokens = ({ description }: PlanInput): number =>
  PROMPT_TOKENS +
  (description ? tokensOf(description.policy.length + JSON.stringify(description.tools).length) : TARGET_TOKENS);

const plannedFor = ({ work }: PlanInput, end: keyof Range, ...which: Purpose[]): number =>
  work.purposes.reduce((all, one) => all + (which.includes(one.purpose) ? one.rollouts[end] : 0), 0);

function ofAnalyst(o: PlanInput): Question[] {
  const { campaign, trajectory, kinds = withPlugins(o.campaign.plugins) } = o;
  const kind = kindOf(kinds.analysts, campaign.analyst);
  const model = kind.languageModel?.(campaign.analyst);
  if (!model) return [];
  const { chunkTokens = Infinity, labelsPerChunk = Infinity } = kind.planned?.(campaign.analyst) ?? {};
  const { passes, maxCandidates } = campaign.selection;
  const rollouts = plannedFor(o, 'low', 'base_rollouts');
  const fixed = fixedTokens(o);
  const room = Math.max(1_000, Math.floor(0.9 * (model.contextTokens - model.maxTokens)) - fixed);
  const all = product(rollouts, trajectory);
  const chunks = range((end) => Math.max(1, Math.ceil(all[end] / Math.min(chunkTokens, room))));
  // Several chunks' proposals are merged by one more question.
  const discovery = range((end) => chunks[end] + (chunks[end] > 1 ? 1 : 0));
  const perPass = range((end) => Math.max(chunks[end], Math.ceil(rollouts / labelsPerChunk)));
  const candidates = { low: Math.ceil(maxCandidates / 2), high: maxCandidates };
  return [
    {
      field: 'analyst',
      step: 'discovery',
      model,
      requests: discovery,
      promptTokens: sum(all, product(discovery, fixed)),
      completionTokens: product(discovery, DISCOVERY_REPLY),
    },
    {
      field: 'analyst',
      step: 'labels',
      model,
      requests: product(passes, perPass),
      promptTokens: product(passes, sum(all, product(perPass, fixed))),
      completionTokens: product(passes, rollouts, candidates, LABEL_TOKENS),
      // Passes ask the same bytes: at best all but the first come from the endpoint's cache.
      cached: (passes - 1) / passes,
    },
  ];
}

function ofSynthesizer(o: PlanInput): Question[] {
  const { campaign, work, kinds = withPlugins(o.campaign.plugins) } = o;
  const kind = kindOf(kinds.synthesizers, campaign.synthesizer);
  const model = kind.languageModel?.(campaign.synthesizer);
  if (!model) return [];
  const rounds = { low: work.capabilities, high: work.capabilities * campaign.calibration.maxRounds };
  const attacks = kind.planned?.(campaign.synthesizer).attacks ? 1 : 0;
  return [
    {
      field: 'synthesizer',
      step: 'environments',
      model,
      requests: product(rounds, 1 + attacks),
      // An attack is thought of from the module.
      promptTokens: product(rounds, sum(fixedTokens(o), ENVIRONMENT_PROMPT, product(attacks, MODULE_REPLY))),
      completionTokens: product(rounds, sum(MODULE_REPLY, product(attacks, ATTACK_REPLY))),
    },
  ];
}

/** An arm that asks writes prompts: each try costs at least a minibatch, and at most two and the validation tasks. */
const ofArms = ({ campaign, work, trajectory }: PlanInput): Question[] =>
  work.arms.flatMap(({ spec, kind, training, reflection }): Question[] => {
    const model = kind.languageModel?.(spec, campaign).model;
    if (!model || !reflection) return [];
    const { minibatchSize, validationTasks } = reflection;
    const requests = {
      low: Math.floor(training / (2 * minibatchSize + validationTasks)),
      high: Math.floor(training / minibatchSize),
    };
    const shown = sum(PROMPT_TOKENS, product(minibatchSize, LESS_COMPACT, trajectory));
    return [
      {
        field: `arms.${armName(spec)}`,
        step: 'reflection',
        model,
        requests,
        promptTokens: product(requests, shown),
        completionTokens: product(requests, PROMPT_REPLY),
      },
    ];
  });

/** The target's users and judges. Held-out tasks and the trainings of arms may be on the target or elsewhere: they are in the upper end alone. */
function ofPartners(o: PlanInput): Question[] {
  const { campaign, work, kinds = withPlugins(o.campaign.plugins) } = o;
  const always = ['base_rollouts', 'outcome_matrix', 'test'] as const;
  const trained = work.arms.reduce((all, { training }) => all + training, 0);
  const rollouts = {
    low: plannedFor(o, 'low', ...always),
    high: plannedFor(o, 'high', ...always, 'held_out') + trained,
  };
  const models = describeSpec(campaign.target, kinds.environments);
  return (['user', 'judge'] as const).flatMap((role): Question[] => {
    const model = models[role];
    if (!model) return [];
    const { asked, prompt, reply } = PARTNERS[role];
    const requests = product(rollouts, asked);
    return [
      {
        field: `target.${role}`,
        step: 'rollouts',
        model,
        requests,
        repaired: 0,
        promptTokens: product(requests, prompt),
        completionTokens: range((end) => requests[end] * Math.min(reply[end], model.maxTokens)),
      },
    ];
  });
}

/** `dollars` is absent where the model has no price. */
function priced({ model, cached = 0, repaired = REPAIRED, field, step, ...counts }: Question) {
  const all = ({ low, high }: Range): Range => ({ low: Math.round(low), high: Math.round(high * (1 + repaired)) });
  const requests = all(counts.requests);
  const promptTokens = all(counts.promptTokens);
  const completionTokens = all(counts.completionTokens);
  const cachedTokens = { low: cached * promptTokens.low, high: 0 };
  const dollars = range((end) => {
    const usage = { promptTokens: promptTokens[end], completionTokens: completionTokens[end] };
    return costOf({ ...usage, cachedTokens: cachedTokens[end] }, model.price).dollars ?? 0;
  });
  return { field, step, requests, promptTokens, completionTokens, ...(model.price && { dollars }) };
}

function budgetText(budget: Campaign['budget'], total: { tokens: Range; dollars?: Range }): string {
  const parts = (['tokens', 'dollars'] as const).flatMap((unit) => {
    const [limit, expected] = [budget[unit], total[unit]];
    if (limit === undefined) return [];
    const is = `budget.${unit} is ${limit}`;
    if (!expected) return [`${is}, and not every model has a price to hold it to: set price there`];
    if (limit >= expected.high) return [`${is}: enough for all that is planned`];
    const short = limit < expected.low ? 'less than what is planned' : 'enough for the lower end of what is planned';
    return [`${is}: ${short}; where it is spent, the campaign stops and goes on once it is raised`];
  });
  return parts.join('; ') || 'no budget: nothing limits what language models cost (budget.tokens, budget.dollars)';
}
