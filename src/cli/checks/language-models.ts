/**
 * The language models that a campaign asks: those of analyst, synthesizer and arms, and those that play the target's other parties. Invariant: each is
 * asked once in the way in which it will be asked, with its own key; nothing of it is kept.
 */
import { armName, type Campaign } from '../../domain/campaign';
import type { PartnerRole } from '../../domain/environment';
import type { Budget, ChatModel, LanguageModelSpec } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { describeSpec } from '../../environments/open';
import { keyOf } from '../../language-model/endpoint';
import { openLanguageModel } from '../../language-model/model';
import { openPartners } from '../../partners/partners';
import { type Registry, registry as allKinds } from '../../registry';
import { messageOf } from '../errors';
import { type Check, failed, passed, withoutPrice } from '../../checks/check';

const fields = ['analyst', 'synthesizer'] as const;
type ModelField = (typeof fields)[number];
type Parts = Pick<Campaign, ModelField>;

interface AskedModel {
  /** Of the campaign file. */
  field: string;
  model: LanguageModelSpec;
}

/** Those of analyst and synthesizer. */
export function languageModelsOf(
  { analyst, synthesizer }: Parts,
  { analysts, synthesizers }: Pick<Registry, 'analysts' | 'synthesizers'> = allKinds,
): { field: ModelField; model: LanguageModelSpec }[] {
  const models = {
    analyst: kindOf(analysts, analyst).languageModel?.(analyst),
    synthesizer: kindOf(synthesizers, synthesizer).languageModel?.(synthesizer),
  };
  return fields.flatMap((field) => (models[field] ? [{ field, model: models[field] }] : []));
}

/** All of them, each once; and the arms that lack one. */
function allOf(campaign: Campaign, kinds: Registry = allKinds): { models: AskedModel[]; lacking: Check[] } {
  const models: AskedModel[] = [...languageModelsOf(campaign, kinds)];
  const lacking: Check[] = [];
  for (const spec of campaign.arms) {
    try {
      const asked = kindOf(kinds.arms, spec).languageModel?.(spec, campaign);
      if (asked && !models.some(({ field }) => field === asked.field)) models.push(asked);
    } catch (error) {
      lacking.push(failed(`arm ${armName(spec)}`, messageOf(error), 'correct it in the campaign file'));
    }
  }
  return { models, lacking };
}

/** Doctor's: costs a few tokens. */
export async function checkLanguageModels(campaign: Campaign, kinds?: Registry): Promise<Check[]> {
  const { models, lacking } = allOf(campaign, kinds);
  const checks = await Promise.all(
    models.map(async ({ field, model }) => {
      const name = `language model of the ${field}`;
      const fix = `correct ${field} in the campaign file (docs/language-models.md)`;
      const { dollars } = campaign.budget;
      if (dollars !== undefined && model.price === undefined) return withoutPrice(name, field, dollars);
      try {
        await ask(field, model);
        return passed(name, `${model.model} at ${model.url} answers`);
      } catch (error) {
        return failed(name, messageOf(error), fix);
      }
    }),
  );
  return [...checks, ...lacking];
}

/** What can be known for nothing: whether there is a model for whoever asks one, and the variables that keys are in are set. */
export function checkKeys(campaign: Campaign, kinds?: Registry): Check[] {
  const { models, lacking } = allOf(campaign, kinds);
  const keyless = models.flatMap(({ field, model }) => {
    try {
      keyOf(`${field}.apiKeyEnv`, model.apiKeyEnv);
      return [];
    } catch (error) {
      return [failed(`language model of the ${field}`, messageOf(error), 'workers take it from there')];
    }
  });
  return [...keyless, ...lacking];
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

export async function checkPartners(
  { target, budget }: Pick<Campaign, 'target' | 'budget'>,
  kinds = environments,
): Promise<Check[]> {
  const { user, judge } = describeSpec(target, kinds);
  const missing = !user && kindOf(kinds, target).needsUser;
  return [
    ...(missing ? [failed('simulated user', 'target.user is missing', 'name its url and model there')] : []),
    ...(user ? [await check('simulated user', user, { role: 'user', budget })] : []),
    ...(judge ? [await check('judge', judge, { role: 'judge', budget })] : []),
  ];
}

async function check(
  name: string,
  model: ChatModel,
  { role, budget }: { role: PartnerRole; budget: Budget },
): Promise<Check> {
  if (budget.dollars !== undefined && model.price === undefined)
    return withoutPrice(name, `target.${role}`, budget.dollars);
  const question = [{ role: 'user', content: 'Say OK.' } as const];
  try {
    const partners = openPartners({ [role]: model });
    await partners.user?.speak({ messages: question, tools: [], seed: 0 });
    await partners.judge?.answer(question);
    return passed(name, `${model.model} at ${model.url} answers`);
  } catch (error) {
    return failed(name, messageOf(error), `start it, or correct target.${role} in the campaign file`);
  }
}
