/** Runs one arm (a baseline) of any kind. Returns its result, or throws it in a failure, as capability.ts does. */
import { workflowInfo } from '@temporalio/workflow';
import { stepsWithin } from '../arms/arm';
import { environments } from '../arms/environments';
import { gepa } from '../arms/gepa';
import { grpoTarget } from '../arms/grpo-target';
import type { ArtifactRef } from '../domain/artifacts';
import { armName, type Campaign } from '../domain/campaign';
import { kindOf } from '../domain/kinds';
import { fileNameOf } from '../domain/places';
import { promptSearchSchema } from '../domain/policies';
import type { ArmOutcome, ArmResult, CapabilityResult, Prepared } from '../domain/results';
import { ChildStatus, withOutcome } from './status';
import { control, mapBounded, planTasks, promptSearch, rolloutSettings } from './steps';
import { acceptedModule, evaluateCheckpoints, train, trainingTasks } from './training';

export interface ArmInput {
  campaign: Campaign;
  prepared: Prepared;
  spec: Campaign['arms'][number];
  /** The most training rollouts of `trace`, or what it spent if the arm starts after the capabilities. */
  budget: number;
  /** Empty for an arm that starts beside the capabilities. */
  capabilities: CapabilityResult[];
}

interface ArmContext extends ArmInput {
  name: string;
  status: ChildStatus;
}

export const campaignArm = (input: ArmInput): Promise<ArmResult> => withOutcome(() => runArm(input));

const runs = [
  { ...grpoTarget, run: trainOnTarget },
  { ...environments, run: trainOnEnvironments },
  { ...gepa, run: searchForPrompt },
];

async function runArm(input: ArmInput): Promise<ArmResult> {
  const { spec } = input;
  const name = armName(spec);
  const status = new ChildStatus(name);
  const result = { name, kind: spec.kind, workflowId: workflowInfo().workflowId };
  try {
    const outcome = await kindOf(runs, spec).run({ ...input, name, status });
    status.set('completed', `${outcome.work.iterations.length} iterations`);
    return { ...result, status: 'completed', ...outcome };
  } catch (error) {
    throw status.failure({ ...result, status: 'failed' }, error);
  }
}

async function trainOnTarget({ campaign, prepared, status, name, budget }: ArmContext): Promise<ArmOutcome> {
  const { kind, version } = grpoTarget;
  const work = await train({
    campaign,
    prepared,
    status,
    name,
    maker: { kind, version, options: {} },
    environment: campaign.target,
    tasks: planTasks(prepared.plan, 'train'),
    heldOut: planTasks(prepared.plan, 'validation'),
    steps: stepsWithin(campaign, budget),
  });
  return { work };
}

async function trainOnEnvironments(context: ArmContext): Promise<ArmOutcome> {
  const { campaign, prepared, spec, status, name, budget } = context;
  const { kind, version, read } = environments;
  const { from } = read(spec);
  const { modules, builtOn } =
    typeof from === 'object' && 'folder' in from
      ? await readFolder(from.folder, context)
      : takeOver(from === 'synthesized' ? undefined : from.capability, context);
  const steps = stepsWithin(campaign, budget);
  const count = steps * campaign.training.groupsPerStep;
  const { environment, tasks } = trainingTasks(campaign, modules, count);
  const work = await train({
    ...{ campaign, prepared, status, name, environment, tasks, steps },
    // The key of the training holds the modules and not their origin.
    maker: { kind, version, options: {} },
    heldOut: planTasks(prepared.plan, 'validation'),
    heldOutOn: campaign.target,
  });
  return { work, trainedOn: modules, ...(builtOn && { builtOn }) };
}

interface EnvironmentSet {
  modules: ArtifactRef[];
  builtOn?: string[];
}

function takeOver(capability: string | undefined, { capabilities }: ArmContext): EnvironmentSet {
  const accepted = capabilities.flatMap(({ name, rounds }) => {
    const module = acceptedModule(rounds);
    return module ? [{ name, module }] : [];
  });
  const names = accepted.map(({ name }) => name);
  if (names.length === 0) throw new Error('no capability has an accepted environment to train on');
  const taken = accepted.filter(({ name }) => capability === undefined || name === capability);
  if (taken.length === 0)
    throw new Error(
      `from.capability is ${capability}, which has no accepted environment; name one of ${names.join(', ')}`,
    );
  return { modules: taken.map(({ module }) => module), builtOn: taken.map(({ name }) => name) };
}

async function readFolder(folder: string, { campaign, name, status }: ArmContext): Promise<EnvironmentSet> {
  status.set('self-test', fileNameOf(folder));
  const taken = await control(campaign, `take the modules of ${name}`).takeModules({ folder });
  const tested = await mapBounded(taken, async ({ file, module }) => {
    const { passed, findings } = await control(campaign, `self-test ${file}`).selfTest({
      module,
      unlike: campaign.target,
      campaign: campaign.name,
      budget: campaign.budget,
    });
    return passed ? [] : [`${file}: ${findings.join('; ')}`];
  });
  const unfit = tested.flat();
  if (unfit.length > 0) throw new Error(`modules of ${fileNameOf(folder)} fail the self-test: ${unfit.join(' | ')}`);
  return { modules: taken.map(({ module }) => module) };
}

async function searchForPrompt({ campaign, prepared, spec, name, budget, status }: ArmContext): Promise<ArmOutcome> {
  const reflection = gepa.languageModel(spec, campaign);
  status.set('train', `a prompt, within ${budget} rollouts`);
  const training = await promptSearch(campaign, `search for a prompt: ${name}`).searchPrompt({
    name,
    environment: campaign.target,
    base: prepared.base,
    tasks: planTasks(prepared.plan, 'train'),
    rollouts: budget,
    search: promptSearchSchema.parse(spec),
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
}
