/**
 * What the language models of analyst, synthesizer and arms, and those that play users and judges, will be asked, and what that costs. Invariant: the
 * kinds' own arithmetic (chunks of compacted trajectories, passes over all of them, rounds of every capability, reflections within an arm's rollouts), and
 * every assumption is a constant here.
 */
import { z } from 'zod';
import { armName, type Campaign } from '../../domain/campaign';
import { promptSearchFields } from '../../domain/policies';
import type { EnvironmentDescription } from '../../domain/environment';
import { costOf, tokensOf, type Price } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import { languageModelsOf } from '../checks/language-models';
import { registry, type Registry } from '../../registry';
import { describeSpec } from '../../environments/open';
import type { PlannedRollouts, Range } from './estimate';
import type { TrajectoryTokens } from './rates';

interface PlannedQuestions {
  field: string;
  step: 'discovery' | 'labels' | 'environments' | 'reflection' | 'rollouts';
  requests: Range;
  promptTokens: Range;
  completionTokens: Range;
  /** Absent where the model has no price. */
  dollars?: Range;
}

export interface LanguageModelPlan {
  questions: PlannedQuestions[];
  total: { requests: Range; tokens: Range; dollars?: Range };
  trajectory: TrajectoryTokens;
  /** How the file's budget compares; absent where no language model is asked. */
  budget?: string;
}

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
  user: { requests: { low: 2, high: 12 }, prompt: { low: 800, high: 5_000 }, reply: { low: 15, high: 150 } },
  judge: { requests: { low: 1, high: 5 }, prompt: { low: 1_000, high: 8_000 }, reply: { low: 20, high: 300 } },
};
/** Of the questions, those that are asked again to mend the answer. */
const REPAIRED = 0.25;

/** Options that the kinds have beside those of the model, with their defaults. */
const optionsSchema = z.object({
  chunkTokens: z.number().default(60_000),
  labelsPerChunk: z.number().default(40),
  attacks: z.number().default(5),
});

const searchSchema = z.object(promptSearchFields);

interface PlanInput {
  campaign: Campaign;
  /** Base rollouts. */
  rollouts: number;
  capabilities: number;
  /** All rollouts that are planned. */
  purposes: readonly PlannedRollouts[];
  description?: EnvironmentDescription | undefined;
  trajectory: TrajectoryTokens;
  kinds?: Registry;
}

type Model = ReturnType<typeof languageModelsOf>[number]['model'];
type Asked = Omit<PlannedQuestions, 'field' | 'dollars'> & { again?: number; repaired?: number };

export function plannedQuestions(o: PlanInput): LanguageModelPlan {
  const questions = languageModelsOf(o.campaign, o.kinds).flatMap(({ field, model }) => {
    const options = optionsSchema.parse(o.campaign[field]);
    const asked =
      field === 'analyst' ? ofAnalyst({ ...o, model, ...options }) : [ofSynthesizer({ ...o, model, ...options })];
    return asked.map((one) => priced(field, model, one));
  });
  questions.push(...ofArms(o), ...ofPartners(o));
  const { tokens, requests, dollars } = totalOf(questions);
  const total = { requests, tokens, ...(dollars && { dollars }) };
  const budget = questions.length === 0 ? undefined : budgetText(o.campaign.budget, total);
  return { questions, total, trajectory: o.trajectory, ...(budget !== undefined && { budget }) };
}

type Means = PlanInput & { model: Model } & z.infer<typeof optionsSchema>;

function ofAnalyst({
  campaign,
  rollouts,
  description,
  trajectory,
  model,
  chunkTokens,
  labelsPerChunk,
}: Means): Asked[] {
  const { passes, maxCandidates } = campaign.selection;
  const fixed = PROMPT_TOKENS + targetTokens(description);
  const room = Math.max(1_000, Math.floor(0.9 * (model.contextTokens - model.maxTokens)) - fixed);
  const all = each((end) => rollouts * trajectory[end]);
  const chunks = each((end) => Math.max(1, Math.ceil(all[end] / Math.min(chunkTokens, room))));
  // Several chunks' proposals are merged by one more question.
  const discovery = each((end) => chunks[end] + (chunks[end] > 1 ? 1 : 0));
  const perPass = each((end) => Math.max(chunks[end], Math.ceil(rollouts / labelsPerChunk)));
  const labels = each((end) => passes * perPass[end]);
  const candidates = { low: Math.ceil(maxCandidates / 2), high: maxCandidates };
  return [
    {
      step: 'discovery',
      requests: discovery,
      promptTokens: each((end) => all[end] + discovery[end] * fixed),
      completionTokens: each((end) => discovery[end] * DISCOVERY_REPLY[end]),
    },
    {
      step: 'labels',
      requests: labels,
      promptTokens: each((end) => passes * (all[end] + perPass[end] * fixed)),
      completionTokens: each((end) => passes * rollouts * candidates[end] * LABEL_TOKENS[end]),
      // Passes ask the same bytes: at best all but the first come from the endpoint's cache.
      again: (passes - 1) / passes,
    },
  ];
}

function ofSynthesizer({ campaign, capabilities, description, attacks }: Means): Asked {
  const all = capabilities;
  const rounds = { low: capabilities, high: all * campaign.calibration.maxRounds };
  const attacked = attacks > 0 ? 1 : 0;
  const fixed = PROMPT_TOKENS + targetTokens(description);
  return {
    step: 'environments',
    requests: each((end) => rounds[end] * (1 + attacked)),
    // An attack is thought of from the module.
    promptTokens: each((end) => rounds[end] * (fixed + ENVIRONMENT_PROMPT[end] + attacked * MODULE_REPLY[end])),
    completionTokens: each((end) => rounds[end] * (MODULE_REPLY[end] + attacked * ATTACK_REPLY[end])),
  };
}

/** An arm that asks writes prompts: each try costs at least a minibatch, and at most two and the validation tasks. */
function ofArms({ campaign, capabilities, trajectory, kinds = registry }: PlanInput): PlannedQuestions[] {
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const budget = capabilities * steps * groupsPerStep * groupSize;
  return campaign.arms.flatMap((spec) => {
    const { languageModel, planned } = kindOf(kinds.arms, spec);
    const asked = languageModel?.(spec, campaign);
    if (!asked) return [];
    const { training } = planned(spec, { campaign, capabilities, budget });
    const { minibatchSize, validationTasks } = searchSchema.parse(spec);
    const requests = {
      low: Math.floor(training / (2 * minibatchSize + validationTasks)),
      high: Math.floor(training / minibatchSize),
    };
    return priced(`arms.${armName(spec)}`, asked.model, {
      step: 'reflection',
      requests,
      promptTokens: each(
        (end) => requests[end] * (PROMPT_TOKENS + minibatchSize * LESS_COMPACT[end] * trajectory[end]),
      ),
      completionTokens: each((end) => requests[end] * PROMPT_REPLY[end]),
    });
  });
}

/** The target's users and judges. Held-out tasks and the trainings of arms may be on the target or elsewhere: they are in the upper end alone. */
function ofPartners({ campaign, capabilities, purposes, kinds = registry }: PlanInput): PlannedQuestions[] {
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const budget = capabilities * steps * groupsPerStep * groupSize;
  const planned = (...which: PlannedRollouts['purpose'][]) =>
    each((end) => purposes.reduce((sum, one) => sum + (which.includes(one.purpose) ? one.rollouts[end] : 0), 0));
  const always = planned('base_rollouts', 'outcome_matrix', 'test');
  const ofArms = campaign.arms.reduce(
    (sum, spec) => sum + kindOf(kinds.arms, spec).planned(spec, { campaign, capabilities, budget }).training,
    0,
  );
  const trained = capabilities > 0 ? ofArms : 0;
  const rollouts = { low: always.low, high: always.high + planned('held_out').high + trained };
  const models = describeSpec(campaign.target, kinds.environments);
  return (['user', 'judge'] as const).flatMap((role) => {
    const model = models[role];
    if (!model) return [];
    const of = PARTNERS[role];
    const requests = each((end) => rollouts[end] * of.requests[end]);
    return priced(`target.${role}`, model, {
      step: 'rollouts',
      requests,
      promptTokens: each((end) => requests[end] * of.prompt[end]),
      completionTokens: each((end) => requests[end] * Math.min(of.reply[end], model.maxTokens)),
      repaired: 0,
    });
  });
}

/** The lower end is without repairs. */
function priced(
  field: string,
  { price }: { price?: Price | undefined },
  { again = 0, repaired: share = REPAIRED, step, ...counts }: Asked,
): PlannedQuestions {
  const repaired = (range: Range): Range => ({
    low: Math.round(range.low),
    high: Math.round(range.high * (1 + share)),
  });
  const requests = repaired(counts.requests);
  const promptTokens = repaired(counts.promptTokens);
  const completionTokens = repaired(counts.completionTokens);
  const dollarsAt = (end: keyof Range, cachedTokens: number): number =>
    costOf({ promptTokens: promptTokens[end], completionTokens: completionTokens[end], cachedTokens }, price).dollars ??
    0;
  const dollars = { low: dollarsAt('low', again * promptTokens.low), high: dollarsAt('high', 0) };
  return { field, step, requests, promptTokens, completionTokens, ...(price && { dollars }) };
}

function totalOf(questions: readonly PlannedQuestions[]): LanguageModelPlan['total'] {
  const sum = (of: (one: PlannedQuestions, end: keyof Range) => number) =>
    each((end) => questions.reduce((all, one) => all + of(one, end), 0));
  return {
    requests: sum(({ requests }, end) => requests[end]),
    tokens: sum(({ promptTokens, completionTokens }, end) => promptTokens[end] + completionTokens[end]),
    ...(questions.every(({ dollars }) => dollars) && { dollars: sum(({ dollars }, end) => dollars?.[end] ?? 0) }),
  };
}

function budgetText(budget: Campaign['budget'], total: LanguageModelPlan['total']): string {
  const parts = (['tokens', 'dollars'] as const).flatMap((unit) => {
    const [limit, expected] = [budget[unit], total[unit]];
    if (limit === undefined) return [];
    if (!expected)
      return [`budget.${unit} is ${limit}, and not every model has a price to hold it to: set price there`];
    if (limit >= expected.high) return [`budget.${unit} is ${limit}: enough for all that is planned`];
    const is = limit < expected.low ? 'less than what is planned' : 'enough for the lower end of what is planned';
    return [`budget.${unit} is ${limit}: ${is}; where it is spent, the campaign stops and goes on once it is raised`];
  });
  return parts.join('; ') || 'no budget: nothing limits what language models cost (budget.tokens, budget.dollars)';
}

const each = (of: (end: keyof Range) => number): Range => ({ low: of('low'), high: of('high') });

const targetTokens = (description: EnvironmentDescription | undefined): number =>
  description ? tokensOf(description.policy.length + JSON.stringify(description.tools).length) : TARGET_TOKENS;
