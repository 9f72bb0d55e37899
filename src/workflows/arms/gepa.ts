/** Searches for a prompt with GEPA (arXiv 2507.19457); no weights change. */
import { armName, type Campaign } from '../../domain/campaign';
import { promptSearchFields } from '../../domain/policies';
import { OutsideFailure } from '../../domain/failures';
import { defineKind } from '../../domain/kinds';
import { languageModelOf, languageModelSchema, type LanguageModelSpec } from '../../domain/endpoints';
import { planTasks, promptSearch, rolloutSettings } from '../steps';
import { evaluateCheckpoints } from '../training';
import type { Arm, ArmKind } from './arm';

const options = {
  ...promptSearchFields,
  reflection: languageModelSchema.optional().describe("Model that writes prompts; default: the analyst's."),
};

/** Number of best prompts that `campaign check` expects of a search. */
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
        tasks: planTasks(prepared.plan, 'train'),
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
      const heldOut = planTasks(prepared.plan, 'validation');
      const evaluated = { campaign, status, name, heldOut, heldOutOn: campaign.target };
      return { work: await evaluateCheckpoints(evaluated, training) };
    },
});

export const gepa: ArmKind = {
  ...kind,
  // A campaign that began with an older version may hold fields that a language model no longer has.
  open: ({ reflection, ...spec }, context) =>
    kind.open(
      { ...spec, ...(reflection !== undefined && { reflection: languageModelOf(reflection as object) }) },
      context,
    ),
  planned: (spec, { budget }) => ({ training: budget, heldOut: EXPECTED_BEST, reflection: kind.read(spec) }),
  languageModel: (spec, campaign) => reflectionOf(armName(spec), kind.read(spec).reflection, campaign),
};

function reflectionOf(
  name: string,
  own: LanguageModelSpec | undefined,
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
