/**
 * Endpoints of a campaign besides its policy server: language models, simulated users and judges, and a Tinker server. Each gets one request in the
 * campaign's form, with its own key; nothing is stored.
 */
import { type CheckItem, MissingRequirement } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import type { ChatModel, LanguageModelSpec } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import { partnersOf } from '../../environments/kinds';
import { keyOf } from '../../llm/client';
import { openLanguageModel } from '../../llm/model';
import { openPartners } from '../../llm/partners';
import { checkTinker, hasTinkerPython, tinkerPython } from '../../policy/tinker';
import { withPlugins } from '../../plugins';
import type { Registry } from '../../registry';

/** Returns language models by field of the campaign file. Another check reports a baseline without one. */
function languageModelsOf(campaign: Campaign, kinds: Registry): Map<string, LanguageModelSpec> {
  const { analyst, synthesizer, arms } = campaign;
  const models = new Map<string, LanguageModelSpec>();
  const add = (field: string, model: LanguageModelSpec | undefined) => model && models.set(field, model);
  add('analyst', kindOf(kinds.analysts, analyst).languageModel?.(analyst));
  add('synthesizer', kindOf(kinds.synthesizers, synthesizer).languageModel?.(synthesizer));
  for (const spec of arms)
    try {
      const asked = kindOf(kinds.arms, spec).languageModel?.(spec, campaign);
      add(asked?.field ?? '', asked?.model);
    } catch {
      continue;
    }
  return models;
}

/** `asks`: sends each model one request, which costs a few tokens; otherwise only its key is checked. */
export function languageModelChecks(campaign: Campaign, { asks }: { asks: boolean }): CheckItem[] {
  const kinds = withPlugins(campaign.plugins);
  const { target, budget } = campaign;
  const { user, judge } = partnersOf(target, kinds.environments);
  const requirePrice = (field: string, { price }: Pick<ChatModel, 'price'>) => {
    if (budget.dollars === undefined || price !== undefined) return;
    const problem = `budget.dollars is ${budget.dollars}, and ${field}.price is missing`;
    throw new MissingRequirement(problem, 'set it, or budget.tokens instead');
  };
  const partner = (name: string, role: 'user' | 'judge', model: ChatModel | undefined): CheckItem => ({
    name,
    fix: `start it, or correct target.${role} in the campaign file`,
    async run() {
      if (!model) throw new MissingRequirement(`target.${role} is missing`, 'name its url and model there');
      requirePrice(`target.${role}`, model);
      const partners = openPartners({ [role]: model });
      await partners.user?.speak({ messages: [QUESTION], tools: [], seed: 0 });
      await partners.judge?.answer([QUESTION]);
      return `${model.model} at ${model.url} answers`;
    },
  });
  const items: CheckItem[] = [];
  if (user || kindOf(kinds.environments, target).needsUser) items.push(partner('simulated user', 'user', user));
  if (judge) items.push(partner('judge', 'judge', judge));
  for (const [field, model] of languageModelsOf(campaign, kinds))
    items.push({
      name: `language model of the ${field}`,
      afterRollouts: true,
      fix: `correct ${field} in the campaign file (docs/language-models.md)`,
      async run() {
        requirePrice(field, model);
        keyOf(`${field}.apiKeyEnv`, model);
        if (!asks) return undefined;
        await ask(field, model);
        return `${model.model} at ${model.url} answers`;
      },
    });
  return items;
}

const QUESTION = { role: 'user', content: 'Say OK.' } as const;
/** An endpoint answers a short question sooner than this. */
const PATIENCE_SECONDS = 60;

async function ask(field: string, model: LanguageModelSpec): Promise<void> {
  const nothing = async () => undefined;
  const timeoutSeconds = Math.min(model.timeoutSeconds, PATIENCE_SECONDS);
  await openLanguageModel(field, { ...model, timeoutSeconds }).ask(
    { messages: [QUESTION], seed: 0 },
    {
      ledger: { find: nothing, permit: nothing, keep: nothing, count: nothing },
      step: 'check',
      signal: new AbortController().signal,
    },
  );
}

/** `tries`: makes an adapter there and trains it for a few steps. */
export function tinkerChecks(campaign: Campaign, { tries }: { tries: boolean }): CheckItem[] {
  const { trainer } = campaign;
  if (trainer.kind !== 'tinker') return [];
  return [
    {
      name: 'Tinker server',
      fix: 'start it, or correct trainer.url in the campaign file, or name another server',
      async run() {
        if (!hasTinkerPython())
          throw new MissingRequirement(
            `there is no ${tinkerPython()}`,
            'run `make tinker`, or name the Python that has its client in CAMPAIGN_TINKER_PYTHON',
          );
        const { model, found } = await checkTinker({ server: trainer, campaign, tries });
        if (!found) return `${trainer.url} has ${model}`;
        const does = `${found.clips ? 'clips' : 'does not clip'} gradients and reduces a loss by ${found.reduction}`;
        return `${trainer.url} trains ${model}: ${does}`;
      },
    },
  ];
}
