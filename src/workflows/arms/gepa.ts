/** Searches for a prompt with GEPA (arXiv 2507.19457): a language model rewrites the prompt from what it reads in rollouts. No weights change. */
import { armName, type Campaign } from '../../domain/campaign';
import { promptSearchFields } from '../../domain/policies';
import { OutsideFailure } from '../../domain/failures';
import { defineKind } from '../../domain/kinds';
import { languageModelSchema, type LanguageModelSpec } from '../../domain/endpoints';
import { part, promptSearch, rolloutSettings } from '../steps';
import { evaluateCheckpoints } from '../training';
import type { Arm, ArmKind } from './arm';

const options = {
  ...promptSearchFields,
  reflection: languageModelSchema
    .omit({ prompts: true })
    .optional()
    .describe("Model that writes prompts; default: the analyst's."),
};

/** Number of best prompts that `campaign check` expects of a search; the true number is not known beforehand. */
const EXPECTED_BEST = 6;

const kind = defineKind<typeof options, Arm>({
  kind: 'gepa',
  version: '1',
  options,
  open:
    ({ reflection: own, ...search }) =>
    async ({ campaign, prepared, name, budget, status }) => {
      const reflection = reflectionOf(name, own, campaign);
      status.set('train', `a prompt, within ${budget} rollouts`);
      const training = await promptSearch(campaign, `search for a prompt: ${name}`).searchPrompt({
        name,
        environment: campaign.target,
        base: prepared.base,
        tasks: part(prepared.plan, 'train'),
        rollouts: budget,
        search,
        reflection,
        sampling: campaign.rollouts.sampling,
        // All training seeds share the rollouts of the base model.
        seed: campaign.seed,
        searchSeed: campaign.trainingSeed ?? campaign.seed,
        maxSteps: campaign.rollouts.maxSteps,
        stallSeconds: campaign.workers.stallSeconds,
        ...rolloutSettings(campaign),
      });
      const heldOut = part(prepared.plan, 'validation');
      const evaluated = { campaign, status, name, heldOut, heldOutOn: campaign.target };
      return { work: await evaluateCheckpoints(evaluated, training) };
    },
});

export const gepa: ArmKind = {
  ...kind,
  planned: (spec, { budget }) => ({ training: budget, heldOut: EXPECTED_BEST, reflection: kind.read(spec) }),
  languageModel: (spec, campaign) => reflectionOf(armName(spec), kind.read(spec).reflection, campaign),
};

function reflectionOf(
  name: string,
  own: Omit<LanguageModelSpec, 'prompts'> | undefined,
  { analyst, parts }: Pick<Campaign, 'analyst' | 'parts'>,
) {
  if (own) return { field: `arms.${name}.reflection`, model: own };
  if (parts?.analystModel) return { field: 'analyst', model: parts.analystModel };
  throw new OutsideFailure(
    'BadInput',
    `arms.${name}.reflection is missing, and analyst.kind is ${analyst.kind}, which asks no language model: set reflection ` +
      `{ url, model, apiKeyEnv } to the model that is to write prompts, or an analyst that asks one`,
  );
}
