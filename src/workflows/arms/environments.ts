/** Trains one adapter with GRPO on a set of environments that take turns. */
import { z } from 'zod';
import type { ArtifactRef } from '../../domain/artifacts';
import { defineKind } from '../../domain/kinds';
import { fileNameOf } from '../../domain/places';
import type { ArmOutcome } from '../../domain/results';
import { control, mapBounded, planTasks } from '../steps';
import { acceptedModule, trainingTasks, train } from '../training';
import { type Arm, type ArmContext, type ArmKind, fieldOf, plannedWhole, stepsWithin } from './arm';

const from = z
  .union(
    [
      z.literal('synthesized'),
      z.strictObject({ capability: z.string().min(1).describe('Name of the capability.') }),
      z.strictObject({ folder: z.string().min(1).describe('Folder of modules.') }),
    ],
    { error: 'synthesized, { capability: NAME } or { folder: PATH }' },
  )
  .default('synthesized')
  .describe('`synthesized` (all accepted ones), `{ capability: NAME }`, or `{ folder: PATH }` (its .js modules).');

interface EnvironmentSet {
  modules: ArtifactRef[];
  builtOn?: string[];
}

const kind = defineKind<{ from: typeof from }, Arm>({
  kind: 'environments',
  version: '2',
  options: { from },
  given: { 'from.folder': '.js' },
  open:
    ({ from: source }, { kind: name, version }) =>
    async (context) => {
      const { modules, builtOn } =
        typeof source === 'object' && 'folder' in source
          ? await readFolder(source.folder, context)
          : takeOver(source === 'synthesized' ? undefined : source.capability, context);
      const { campaign, prepared, status } = context;
      const steps = stepsWithin(campaign, context.budget);
      const count = steps * campaign.training.groupsPerStep;
      const { environment, tasks } = trainingTasks(campaign, modules, count);
      const work = await train({
        ...{ campaign, prepared, status, name: context.name, environment, tasks, steps },
        // The key of the training holds the modules and not their origin.
        maker: { kind: name, version, options: {} },
        heldOut: planTasks(prepared.plan, 'validation'),
        heldOutOn: campaign.target,
      });
      return { work, trainedOn: modules, ...(builtOn && { builtOn }) } satisfies ArmOutcome;
    },
});

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

const folderOf = (spec: Parameters<typeof kind.read>[0]): string | undefined => {
  const { from: source } = kind.read(spec);
  return typeof source === 'object' && 'folder' in source ? source.folder : undefined;
};

export const environments: ArmKind = {
  ...kind,
  buildsOnCapabilities: (spec) => folderOf(spec) === undefined,
  planned: plannedWhole,
  reads(spec) {
    const path = folderOf(spec);
    return path === undefined ? undefined : { field: fieldOf(spec, 'from.folder'), path };
  },
};
