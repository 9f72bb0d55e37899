/**
 * What language models will be asked, and what that costs: chunks of compacted trajectories, passes over all of them, rounds of every capability,
 * reflections within an arm's rollouts, and the words of users and judges. Every assumption is a constant here.
 */
import { armName, type Campaign } from '../../domain/campaign';
import { costOf, type Price, tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import { describeSpec } from '../../environments/open';
import { registry, type Registry } from '../../registry';
import { plannedArms, type PlannedRollouts } from './estimate';
import { type Range, range, type Rate } from './rates';

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
  trajectory: Rate;
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
/** Of the questions, those that are asked again to mend the answer: in the upper end alone. */
const REPAIRED = 0.25;

interface PlanInput {
  campaign: Campaign;
  /** Base rollouts. */
  rollouts: number;
  capabilities: number;
  /** All rollouts that are planned. */
  purposes: readonly PlannedRollouts[];
  description?: EnvironmentDescription | undefined;
  /** Tokens of one base rollout as it is shown. */
  trajectory: Rate;
  kinds?: Registry;
}

interface Question extends Pick<PlannedQuestions, 'field' | 'step' | 'requests' | 'promptTokens' | 'completionTokens'> {
  model: { price?: Price | undefined };
  /** Share of the prompts that the endpoint's cache may hold. */
  cached?: number;
  repaired?: number;
}

export function plannedQuestions(o: PlanInput): LanguageModelPlan {
  const { campaign, trajectory } = o;
  const questions = [...ofAnalyst(o), ...ofSynthesizer(o), ...ofArms(o), ...ofPartners(o)].map(priced);
  const sum = (of: (one: PlannedQuestions, end: keyof Range) => number) =>
    range((end) => questions.reduce((all, one) => all + of(one, end), 0));
  const isPriced = questions.every(({ dollars }) => dollars);
  const total = {
    requests: sum(({ requests }, end) => requests[end]),
    tokens: sum(({ promptTokens, completionTokens }, end) => promptTokens[end] + completionTokens[end]),
    ...(isPriced && { dollars: sum(({ dollars }, end) => dollars?.[end] ?? 0) }),
  };
  return { questions, total, trajectory, ...(questions.length > 0 && { budget: budgetText(campaign.budget, total) }) };
}

const fixedTokens = ({ description }: PlanInput): number =>
  PROMPT_TOKENS +
  (description ? tokensOf(description.policy.length + JSON.stringify(description.tools).length) : TARGET_TOKENS);

function ofAnalyst(o: PlanInput): Question[] {
  const { campaign, rollouts, trajectory, kinds = registry } = o;
  const kind = kindOf(kinds.analysts, campaign.analyst);
  const model = kind.languageModel?.(campaign.analyst);
  if (!model) return [];
  const { chunkTokens = Infinity, labelsPerChunk = Infinity } = kind.planned?.(campaign.analyst) ?? {};
  const { passes, maxCandidates } = campaign.selection;
  const fixed = fixedTokens(o);
  const room = Math.max(1_000, Math.floor(0.9 * (model.contextTokens - model.maxTokens)) - fixed);
  const all = range((end) => rollouts * trajectory[end]);
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
      promptTokens: range((end) => all[end] + discovery[end] * fixed),
      completionTokens: range((end) => discovery[end] * DISCOVERY_REPLY[end]),
    },
    {
      field: 'analyst',
      step: 'labels',
      model,
      requests: range((end) => passes * perPass[end]),
      promptTokens: range((end) => passes * (all[end] + perPass[end] * fixed)),
      completionTokens: range((end) => passes * rollouts * candidates[end] * LABEL_TOKENS[end]),
      // Passes ask the same bytes: at best all but the first come from the endpoint's cache.
      cached: (passes - 1) / passes,
    },
  ];
}

function ofSynthesizer(o: PlanInput): Question[] {
  const { campaign, capabilities, kinds = registry } = o;
  const kind = kindOf(kinds.synthesizers, campaign.synthesizer);
  const model = kind.languageModel?.(campaign.synthesizer);
  if (!model) return [];
  const rounds = { low: capabilities, high: capabilities * campaign.calibration.maxRounds };
  const attacked = kind.planned?.(campaign.synthesizer).attacks ? 1 : 0;
  const fixed = fixedTokens(o);
  return [
    {
      field: 'synthesizer',
      step: 'environments',
      model,
      requests: range((end) => rounds[end] * (1 + attacked)),
      // An attack is thought of from the module.
      promptTokens: range((end) => rounds[end] * (fixed + ENVIRONMENT_PROMPT[end] + attacked * MODULE_REPLY[end])),
      completionTokens: range((end) => rounds[end] * (MODULE_REPLY[end] + attacked * ATTACK_REPLY[end])),
    },
  ];
}

/** An arm that asks writes prompts: each try costs at least a minibatch, and at most two and the validation tasks. */
function ofArms(o: PlanInput): Question[] {
  const { campaign, trajectory } = o;
  return plannedArms(o).arms.flatMap<Question>(({ spec, kind, training, reflection }) => {
    const model = kind.languageModel?.(spec, campaign).model;
    if (!model || !reflection) return [];
    const { minibatchSize, validationTasks } = reflection;
    const requests = {
      low: Math.floor(training / (2 * minibatchSize + validationTasks)),
      high: Math.floor(training / minibatchSize),
    };
    const shown = range((end) => PROMPT_TOKENS + minibatchSize * LESS_COMPACT[end] * trajectory[end]);
    return [
      {
        field: `arms.${armName(spec)}`,
        step: 'reflection',
        model,
        requests,
        promptTokens: range((end) => requests[end] * shown[end]),
        completionTokens: range((end) => requests[end] * PROMPT_REPLY[end]),
      },
    ];
  });
}

/** The target's users and judges. Held-out tasks and the trainings of arms may be on the target or elsewhere: they are in the upper end alone. */
function ofPartners(o: PlanInput): Question[] {
  const { campaign, purposes, kinds = registry } = o;
  const planned = (end: keyof Range, ...which: PlannedRollouts['purpose'][]) =>
    purposes.reduce((sum, one) => sum + (which.includes(one.purpose) ? one.rollouts[end] : 0), 0);
  const always = ['base_rollouts', 'outcome_matrix', 'test'] as const;
  const rollouts = {
    low: planned('low', ...always),
    high: planned('high', ...always, 'held_out') + plannedArms(o).trained,
  };
  const models = describeSpec(campaign.target, kinds.environments);
  return (['user', 'judge'] as const).flatMap<Question>((role) => {
    const model = models[role];
    if (!model) return [];
    const { prompt, reply, ...each } = PARTNERS[role];
    const requests = range((end) => rollouts[end] * each.requests[end]);
    return [
      {
        field: `target.${role}`,
        step: 'rollouts',
        model,
        requests,
        repaired: 0,
        promptTokens: range((end) => requests[end] * prompt[end]),
        completionTokens: range((end) => requests[end] * Math.min(reply[end], model.maxTokens)),
      },
    ];
  });
}

function priced({ model, cached = 0, repaired = REPAIRED, field, step, ...counts }: Question): PlannedQuestions {
  const all = ({ low, high }: Range): Range => ({ low: Math.round(low), high: Math.round(high * (1 + repaired)) });
  const requests = all(counts.requests);
  const promptTokens = all(counts.promptTokens);
  const completionTokens = all(counts.completionTokens);
  const share = { low: cached, high: 0 };
  const dollars = range((end) => {
    const tokens = { promptTokens: promptTokens[end], completionTokens: completionTokens[end] };
    return costOf({ ...tokens, cachedTokens: share[end] * promptTokens[end] }, model.price).dollars ?? 0;
  });
  return { field, step, requests, promptTokens, completionTokens, ...(model.price && { dollars }) };
}

function budgetText(budget: Campaign['budget'], total: LanguageModelPlan['total']): string {
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
