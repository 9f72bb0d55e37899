/** GEPA (arXiv 2507.19457): no weights but a prompt, which a language model rewrites from what it reads in rollouts. */
import { armName, type Campaign } from '../../domain/campaign';
import { promptSearchFields } from '../../domain/policies';
import { OutsideFailure } from '../../domain/failures';
import { defineKind } from '../../domain/kinds';
import { languageModelSchema, type LanguageModelSpec } from '../../domain/endpoints';
import { makingOf, part, promptSearch, silenceOf } from '../steps';
import { iterationsOf } from '../training';
import type { Arm, ArmKind } from './arm';

const options = {
  ...promptSearchFields,
  reflection: languageModelSchema
    .omit({ prompts: true })
    .optional()
    .describe("Model that writes prompts; default: the analyst's."),
};

/** Of the policies that a search comes to: how many new best ones there are, nobody knows before. */
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
        // Rollouts of the base model are shared by all training seeds.
        seed: campaign.seed,
        searchSeed: campaign.trainingSeed ?? campaign.seed,
        maxSteps: campaign.rollouts.maxSteps,
        ...makingOf(campaign),
        ...silenceOf(campaign),
      });
      const heldOut = part(prepared.plan, 'validation');
      const evaluated = { campaign, status, name, heldOut, heldOutOn: campaign.target };
      return { training, iterations: await iterationsOf(evaluated, training) };
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
