/** Estimates the requests to language models, their tokens and dollars. The ranges of prompts and replies are constants here; all else is counted. */
import { armName, type Campaign } from '../../domain/campaign';
import { costOf, type Price, tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import { jsonText } from '../../domain/messages';
import { type Purpose, rolloutSchema } from '../../domain/rollout';
import { compactOne } from '../../domain/transcript';
import { describeSpec } from '../../environments/open';
import { withPlugins } from '../../plugins';
import type { Registry } from '../../registry';
import type { Report } from '../../report/model';
import { openStore } from '../../store/open-store';
import type { Home } from '../project';
import { type PlannedWork, product, type Range, range, sum } from './work';

/** Tokens of the prompts' own text, and of policy and tools of a target that cannot be opened. */
const PROMPT_TOKENS = 2_000;
const TARGET_TOKENS = 3_000;
/** Examples of modules, failures, and findings on the previous module. */
const ENVIRONMENT_PROMPT: Range = { low: 10_000, high: 40_000 };
/** Replies include reasoning. */
const DISCOVERY_REPLY: Range = { low: 2_000, high: 12_000 };
const LABEL_TOKENS: Range = { low: 30, high: 90 };
const MODULE_REPLY: Range = { low: 6_000, high: 25_000 };
const ATTACK_REPLY: Range = { low: 1_000, high: 6_000 };
/** Factor for trajectories that a prompt search shows less compacted. */
const LESS_COMPACT: Range = { low: 1, high: 3 };
const PROMPT_REPLY: Range = { low: 500, high: 4_000 };
/** Requests in a rollout, and tokens of each. */
const PARTNERS = {
  user: { asked: { low: 2, high: 12 }, prompt: { low: 800, high: 5_000 }, reply: { low: 15, high: 150 } },
  judge: { asked: { low: 1, high: 5 }, prompt: { low: 1_000, high: 8_000 }, reply: { low: 20, high: 300 } },
};
/** Share of requests that are repeated because the reply cannot be used; counted in the upper end. */
const REPAIRED = 0.25;
/** A base rollout as it is shown: 4 to 20 turns of 40 to 200 tokens. */
const TRAJECTORY: Range = { low: 4 * 40, high: 20 * 200 };

/** Tokens of a base rollout as it is shown. */
export interface Trajectory extends Range {
  /** The campaign that measured it. */
  campaign?: string;
}

interface PlanInput {
  campaign: Campaign;
  work: Pick<PlannedWork, 'capabilities' | 'arms' | 'purposes'>;
  description?: EnvironmentDescription | undefined;
  trajectory: Trajectory;
  kinds?: Registry;
}

interface ModelRequests {
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

export type LanguageModelPlan = ReturnType<typeof plannedRequests>;

/** `total.dollars` is absent where a model has no price. `budget` compares the file's budget with the total. */
export function plannedRequests(o: PlanInput) {
  const questions = [
    ...analystRequests(o),
    ...synthesizerRequests(o),
    ...reflectionRequests(o),
    ...partnerRequests(o),
  ].map(priced);
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

function analystRequests(o: PlanInput): ModelRequests[] {
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
  // One more request merges the proposals of several chunks.
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
      // All passes send the same bytes: at best the endpoint's cache holds all but the first.
      cached: (passes - 1) / passes,
    },
  ];
}

function synthesizerRequests(o: PlanInput): ModelRequests[] {
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
      promptTokens: product(rounds, sum(fixedTokens(o), ENVIRONMENT_PROMPT, product(attacks, MODULE_REPLY))),
      completionTokens: product(rounds, sum(MODULE_REPLY, product(attacks, ATTACK_REPLY))),
    },
  ];
}

/** Reflections of a prompt search: a try costs at least a minibatch, and at most two and the validation tasks. */
const reflectionRequests = ({ campaign, work, trajectory }: PlanInput): ModelRequests[] =>
  work.arms.flatMap(({ spec, kind, training, reflection }): ModelRequests[] => {
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

/** Users and judges. Held-out rollouts and the training of baselines may be on the target or elsewhere; the upper end counts them. */
function partnerRequests(o: PlanInput): ModelRequests[] {
  const { campaign, work, kinds = withPlugins(o.campaign.plugins) } = o;
  const always = ['base_rollouts', 'outcome_matrix', 'test'] as const;
  const trained = work.arms.reduce((all, { training }) => all + training, 0);
  const rollouts = {
    low: plannedFor(o, 'low', ...always),
    high: plannedFor(o, 'high', ...always, 'held_out') + trained,
  };
  const models = describeSpec(campaign.target, kinds.environments);
  return (['user', 'judge'] as const).flatMap((role): ModelRequests[] => {
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
function priced({ model, cached = 0, repaired = REPAIRED, field, step, ...counts }: ModelRequests) {
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
    if (!expected) return [`${is}, but not every model has a price; set price`];
    if (limit >= expected.high) return [`${is}: enough`];
    return [
      `${is}: ${limit < expected.low ? 'too low' : 'enough for the lower end'}; a campaign stops when it is spent`,
    ];
  });
  return parts.join('; ') || 'no budget limits this cost (budget.tokens, budget.dollars)';
}

/** Measures base rollouts of the newest report whose rollouts are in the home's store. */
export async function trajectoryTokens(reports: readonly Report[], home: Home): Promise<Trajectory> {
  const store = await openStore(home.root);
  const line = jsonText.pipe(rolloutSchema);
  for (const { campaign, rollouts } of reports) {
    const [ref] = rollouts?.byPurpose.find(({ purpose }) => purpose === 'base_rollouts')?.scored.from ?? [];
    const text = ref && (await store.read(ref).catch(() => undefined))?.toString('utf8');
    const lengths = (text ?? '').split('\n').flatMap((one) => {
      const rollout = one === '' ? undefined : line.safeParse(one).data;
      return rollout?.status === 'scored' ? [tokensOf(compactOne({ rollout, id: 'r100' }).length)] : [];
    });
    if (lengths.length === 0) continue;
    const mean = lengths.reduce((all, length) => all + length, 0) / lengths.length;
    return { low: mean, high: mean, campaign: campaign.name };
  }
  return TRAJECTORY;
}
