/** Estimates the requests to language models, their tokens and dollars. The ranges of prompts and replies are constants; rollouts are counted. */
import { armName, type Campaign } from '../../domain/campaign';
import { costOf, type Price } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import type { Purpose } from '../../domain/rollout';
import { partnersOf } from '../../environments/kinds';
import { withPlugins } from '../../plugins';
import { type PlannedWork, product, type Range, range, sum } from './work';

/** Tokens of a prompt's own text, with policy and tools of the target. */
const PROMPT_TOKENS = 5_000;
/** A base rollout as it is shown: 4 to 20 turns of 40 to 200 tokens. */
const TRAJECTORY: Range = { low: 4 * 40, high: 20 * 200 };
/** Prompt tokens of a request for a module: example modules, failed rollouts, and the findings about the previous module. */
const ENVIRONMENT_PROMPT: Range = { low: 10_000, high: 40_000 };
/** Tokens of replies, with reasoning and repairs. */
const DISCOVERY_REPLY: Range = { low: 2_000, high: 15_000 };
const LABEL_TOKENS: Range = { low: 30, high: 110 };
const MODULE_REPLY: Range = { low: 6_000, high: 30_000 };
const ATTACK_REPLY: Range = { low: 1_000, high: 8_000 };
const PROMPT_REPLY: Range = { low: 500, high: 5_000 };
/** Requests in a rollout, and tokens of each. */
const PARTNERS = {
  user: { asked: { low: 2, high: 12 }, prompt: { low: 800, high: 5_000 }, reply: { low: 15, high: 150 } },
  judge: { asked: { low: 1, high: 5 }, prompt: { low: 1_000, high: 8_000 }, reply: { low: 20, high: 300 } },
};

interface PlanInput {
  campaign: Campaign;
  work: Pick<PlannedWork, 'capabilities' | 'arms' | 'purposes'>;
}

interface ModelRequests {
  field: string;
  step: 'discovery' | 'labels' | 'environments' | 'reflection' | 'rollouts';
  model: { price?: Price | undefined };
  /** Number of requests of this step, all together; the tokens, too. */
  requests: Range;
  promptTokens: Range;
  completionTokens: Range;
}

export type LanguageModelPlan = ReturnType<typeof planOf>;

export function plannedRequests(o: PlanInput): LanguageModelPlan {
  const { campaign } = o;
  const rollouts = plannedFor(o, 'low', 'base_rollouts');
  const analysis = analysisRequests({ campaign, rollouts, shown: product(rollouts, TRAJECTORY) });
  return planOf([...analysis, ...synthesizerRequests(o), ...reflectionRequests(o), ...partnerRequests(o)]);
}

/** Adds dollars and totals. Dollars are absent where a model has no price. */
export function planOf(requests: readonly ModelRequests[]) {
  const questions = requests.map(({ model: { price }, ...counts }) => {
    const dollars = range((end) => {
      const [promptTokens, completionTokens] = [counts.promptTokens[end], counts.completionTokens[end]];
      return costOf({ promptTokens, completionTokens, cachedTokens: 0 }, price).dollars ?? 0;
    });
    return { ...counts, ...(price && { dollars }) };
  });
  const dollars = questions.flatMap((one) => one.dollars ?? []);
  const total = {
    requests: sum(...questions.map(({ requests }) => requests)),
    tokens: sum(...questions.map(({ promptTokens, completionTokens }) => sum(promptTokens, completionTokens))),
    ...(dollars.length === questions.length && { dollars: sum(...dollars) }),
  };
  return { questions, total };
}

const plannedFor = ({ work }: PlanInput, end: keyof Range, ...which: Purpose[]): number =>
  work.purposes.reduce((all, one) => all + (which.includes(one.purpose) ? one.rollouts[end] : 0), 0);

/** Estimates the requests of an analysis of so many rollouts. `shown`: their tokens, once. */
export function analysisRequests(o: {
  campaign: Pick<Campaign, 'analyst' | 'selection' | 'plugins'>;
  rollouts: number;
  shown: Range;
}): ModelRequests[] {
  const { rollouts, shown } = o;
  const { analyst, selection, plugins } = o.campaign;
  const kind = kindOf(withPlugins(plugins).analysts, analyst);
  const model = kind.languageModel?.(analyst);
  if (!model) return [];
  const { chunkTokens = Infinity, labelsPerChunk = Infinity } = kind.planned?.(analyst) ?? {};
  const { passes, maxCandidates } = selection;
  const room = Math.max(1_000, Math.floor(0.9 * (model.contextTokens - model.maxTokens)) - PROMPT_TOKENS);
  const chunks = range((end) => Math.max(1, Math.ceil(shown[end] / Math.min(chunkTokens, room))));
  // One more request merges the proposals of several chunks.
  const discovery = range((end) => chunks[end] + (chunks[end] > 1 ? 1 : 0));
  const labels = range((end) => passes * Math.max(chunks[end], Math.ceil(rollouts / labelsPerChunk)));
  return [
    {
      ...{ field: 'analyst', step: 'discovery', model, requests: discovery },
      promptTokens: sum(shown, product(discovery, PROMPT_TOKENS)),
      completionTokens: product(discovery, DISCOVERY_REPLY),
    },
    {
      ...{ field: 'analyst', step: 'labels', model, requests: labels },
      promptTokens: sum(product(passes, shown), product(labels, PROMPT_TOKENS)),
      completionTokens: product(passes * rollouts * maxCandidates, LABEL_TOKENS),
    },
  ];
}

function synthesizerRequests({ campaign, work }: PlanInput): ModelRequests[] {
  const { synthesizer, calibration, plugins } = campaign;
  const kind = kindOf(withPlugins(plugins).synthesizers, synthesizer);
  const model = kind.languageModel?.(synthesizer);
  if (!model) return [];
  const rounds = { low: work.capabilities, high: work.capabilities * calibration.maxRounds };
  const attacks = kind.planned?.(synthesizer).attacks ? 1 : 0;
  return [
    {
      ...{ field: 'synthesizer', step: 'environments', model, requests: product(rounds, 1 + attacks) },
      promptTokens: product(rounds, sum(PROMPT_TOKENS, ENVIRONMENT_PROMPT, product(attacks, MODULE_REPLY))),
      completionTokens: product(rounds, sum(MODULE_REPLY, product(attacks, ATTACK_REPLY))),
    },
  ];
}

/** Reflections of a prompt search: a try costs at least a minibatch, and at most two and the validation tasks. */
const reflectionRequests = ({ campaign, work }: PlanInput): ModelRequests[] =>
  work.arms.flatMap(({ spec, kind, training, reflection }): ModelRequests[] => {
    const model = kind.languageModel?.(spec, campaign).model;
    if (!model || !reflection) return [];
    const { minibatchSize, validationTasks } = reflection;
    const requests = {
      low: Math.floor(training / (2 * minibatchSize + validationTasks)),
      high: Math.floor(training / minibatchSize),
    };
    return [
      {
        ...{ field: `arms.${armName(spec)}`, step: 'reflection', model, requests },
        promptTokens: product(requests, sum(PROMPT_TOKENS, product(minibatchSize, TRAJECTORY))),
        completionTokens: product(requests, PROMPT_REPLY),
      },
    ];
  });

/** Users and judges. Held-out rollouts and the training of baselines may be on the target or elsewhere; the upper end counts them. */
function partnerRequests(o: PlanInput): ModelRequests[] {
  const { campaign, work } = o;
  const always = ['base_rollouts', 'outcome_matrix', 'test'] as const;
  const trained = work.arms.reduce((all, { training }) => all + training, 0);
  const rollouts = {
    low: plannedFor(o, 'low', ...always),
    high: plannedFor(o, 'high', ...always, 'held_out') + trained,
  };
  const models = partnersOf(campaign.target, withPlugins(campaign.plugins).environments);
  return (['user', 'judge'] as const).flatMap((role): ModelRequests[] => {
    const model = models[role];
    if (!model) return [];
    const { asked, prompt, reply } = PARTNERS[role];
    const requests = product(rollouts, asked);
    const completionTokens = range((end) => requests[end] * Math.min(reply[end], model.maxTokens));
    const promptTokens = product(requests, prompt);
    return [{ field: `target.${role}`, step: 'rollouts', model, requests, promptTokens, completionTokens }];
  });
}
