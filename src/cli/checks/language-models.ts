/**
 * The language models that analyst and synthesizer ask. Invariant: each is asked once in the way in which it will be asked, with its own key,
 * so that what an endpoint does not take is found here; nothing of it is kept.
 */
import { kindOf, type Kind, type KindSpec } from '../../domain/kind';
import { languageModelFields, languageModelSchema, type LanguageModelSpec } from '../../domain/language-model';
import { keyOf } from '../../language-model/endpoint';
import { openLanguageModel } from '../../language-model/model';
import type { Campaign } from '../../domain/campaign';
import { registry as allKinds, type Registry } from '../../registry';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

const fields = ['analyst', 'synthesizer'] as const;
export type ModelField = (typeof fields)[number];
type Parts = Pick<Campaign, ModelField>;

/** Those of a campaign, whatever the kinds that ask them are called. */
export function languageModelsOf(
  campaign: Parts,
  { analysts, synthesizers }: Pick<Registry, 'analysts' | 'synthesizers'> = allKinds,
): { field: ModelField; model: LanguageModelSpec }[] {
  const asks = (spec: KindSpec, kinds: readonly Pick<Kind<unknown>, 'kind' | 'options'>[]): boolean => {
    const { options } = kindOf(kinds, spec);
    return Object.keys(languageModelFields).every((name) => name in options);
  };
  const kinds = { analyst: analysts, synthesizer: synthesizers };
  return fields
    .filter((field) => asks(campaign[field], kinds[field]))
    .map((field) => ({ field, model: languageModelSchema.strip().parse(campaign[field]) }));
}

/** Doctor's: costs a few tokens. */
export const checkLanguageModels = (campaign: Parts & Pick<Campaign, 'budget'>, kinds?: Registry): Promise<Check[]> =>
  Promise.all(
    languageModelsOf(campaign, kinds).map(async ({ field, model }) => {
      const name = `language model of the ${field}`;
      const fix = `correct ${field} in the campaign file (docs/language-models.md)`;
      const { dollars } = campaign.budget;
      if (dollars !== undefined && model.price === undefined)
        return failed(
          name,
          `budget.dollars is ${dollars}, and ${field}.price is missing`,
          'set it, or budget.tokens instead',
        );
      try {
        await ask(field, model);
        return passed(name, `${model.model} at ${model.url} answers`);
      } catch (error) {
        return failed(name, messageOf(error), fix);
      }
    }),
  );

/** What can be known for nothing: whether the variables that keys are in are set. */
export const checkKeys = (campaign: Parts, kinds?: Registry): Check[] =>
  languageModelsOf(campaign, kinds).flatMap(({ field, model }) => {
    try {
      keyOf(`${field}.apiKeyEnv`, model.apiKeyEnv);
      return [];
    } catch (error) {
      return [failed(`language model of the ${field}`, messageOf(error), 'workers take it from there')];
    }
  });

/** An endpoint that is up answers a short question sooner. */
const PATIENCE_SECONDS = 60;

async function ask(field: ModelField, model: LanguageModelSpec): Promise<void> {
  const nothing = async () => undefined;
  const timeoutSeconds = Math.min(model.timeoutSeconds, PATIENCE_SECONDS);
  await openLanguageModel(field, { ...model, timeoutSeconds }).ask(
    { messages: [{ role: 'user', content: 'Say OK.' }], seed: 0 },
    {
      ledger: { find: nothing, permit: nothing, keep: nothing, countLost: nothing },
      step: 'doctor',
      signal: new AbortController().signal,
    },
  );
}
