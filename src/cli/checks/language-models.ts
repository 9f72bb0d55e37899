/**
 * The language models that a campaign asks: those of analyst, synthesizer and arms, and those that play the target's other parties. Each is asked
 * once in the way in which it will be asked, with its own key; nothing of it is kept.
 */
import { type CheckItem, Lack } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import type { ChatModel, LanguageModelSpec } from '../../domain/endpoints';
import type { PartnerRole } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import { describeSpec } from '../../environments/open';
import { keyOf } from '../../language-model/endpoint';
import { openLanguageModel } from '../../language-model/model';
import { openPartners } from '../../partners/partners';
import { type Registry, registry as allKinds } from '../../registry';

interface AskedModel {
  /** Of the campaign file. */
  field: string;
  model: LanguageModelSpec;
}

/** Each once. That an arm has none to ask, a check of its own says. */
function languageModelsOf(campaign: Campaign, kinds: Registry): AskedModel[] {
  const { analyst, synthesizer, arms } = campaign;
  const ofParts = {
    analyst: kindOf(kinds.analysts, analyst).languageModel?.(analyst),
    synthesizer: kindOf(kinds.synthesizers, synthesizer).languageModel?.(synthesizer),
  };
  const models: AskedModel[] = Object.entries(ofParts).flatMap(([field, model]) => (model ? [{ field, model }] : []));
  for (const spec of arms)
    try {
      const asked = kindOf(kinds.arms, spec).languageModel?.(spec, campaign);
      if (asked && !models.some(({ field }) => field === asked.field)) models.push(asked);
    } catch {
      continue;
    }
  return models;
}

interface ModelChecks {
  /** Those of analyst, synthesizer and arms are asked, which costs a few tokens; else it is seen alone whether their keys are set. */
  asks: boolean;
  kinds?: Registry;
}

export function languageModelChecks(campaign: Campaign, { asks, kinds = allKinds }: ModelChecks): CheckItem[] {
  const { target, budget } = campaign;
  const requirePrice = (field: string, { price }: Pick<ChatModel, 'price'>) => {
    if (budget.dollars === undefined || price !== undefined) return;
    throw new Lack(
      `budget.dollars is ${budget.dollars}, and ${field}.price is missing`,
      'set it, or budget.tokens instead',
    );
  };
  const { user, judge } = describeSpec(target, kinds.environments);
  const partner = (name: string, role: PartnerRole, model: ChatModel): CheckItem => ({
    name,
    fix: `start it, or correct target.${role} in the campaign file`,
    async run() {
      requirePrice(`target.${role}`, model);
      const question = [{ role: 'user', content: 'Say OK.' } as const];
      const partners = openPartners({ [role]: model });
      await partners.user?.speak({ messages: question, tools: [], seed: 0 });
      await partners.judge?.answer(question);
      return `${model.model} at ${model.url} answers`;
    },
  });
  const missing: CheckItem = {
    name: 'simulated user',
    fix: 'name its url and model there',
    run() {
      throw new Lack('target.user is missing');
    },
  };
  return [
    ...(!user && kindOf(kinds.environments, target).needsUser ? [missing] : []),
    ...(user ? [partner('simulated user', 'user', user)] : []),
    ...(judge ? [partner('judge', 'judge', judge)] : []),
    ...languageModelsOf(campaign, kinds).map(({ field, model }): CheckItem => ({
      name: `language model of the ${field}`,
      afterRollouts: true,
      fix: `correct ${field} in the campaign file (docs/language-models.md)`,
      async run() {
        requirePrice(field, model);
        keyOf(`${field}.apiKeyEnv`, model.apiKeyEnv);
        if (!asks) return undefined;
        await ask(field, model);
        return `${model.model} at ${model.url} answers`;
      },
    })),
  ];
}

/** An endpoint that is up answers a short question sooner. */
const PATIENCE_SECONDS = 60;

async function ask(field: string, model: LanguageModelSpec): Promise<void> {
  const nothing = async () => undefined;
  const timeoutSeconds = Math.min(model.timeoutSeconds, PATIENCE_SECONDS);
  await openLanguageModel(field, { ...model, timeoutSeconds }).ask(
    { messages: [{ role: 'user', content: 'Say OK.' }], seed: 0 },
    {
      ledger: { find: nothing, permit: nothing, keep: nothing, count: nothing },
      step: 'doctor',
      signal: new AbortController().signal,
    },
  );
}
