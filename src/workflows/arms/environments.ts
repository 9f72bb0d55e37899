/** One LoRA on a ready set of environments that somebody brings, mixed: what environments made for no capability in particular come to. */
import { z } from 'zod';
import { defineKind } from '../../domain/kinds';
import { fileNameOf } from '../../domain/places';
import { activity } from '../steps';
import { type Arm, type ArmKind, fieldOf, plannedWhole, trainOnModules } from './arm';

const options = {
  modules: z.string().min(1).describe('Folder of modules (docs/synthesis.md): every .js file is one.'),
};

const kind = defineKind<typeof options, Arm>({
  kind: 'environments',
  version: '1',
  options,
  given: { modules: '.js' },
  open:
    ({ modules: folder }, { kind, version }) =>
    async (context) => {
      const { campaign, name, status } = context;
      status.set('self-test', fileNameOf(folder));
      const taken = await status.gate.step(() =>
        activity(campaign, `take the modules of ${name}`).takeModules({ folder }),
      );
      const tested = await status.gate.step(() =>
        Promise.all(
          taken.map(async ({ file, module }) => {
            const { passed, findings } = await activity(campaign, `self-test ${file}`).selfTest({
              module,
              unlike: campaign.target,
              campaign: campaign.name,
              budget: campaign.budget,
            });
            return passed ? [] : [`${file}: ${findings.join('; ')}`];
          }),
        ),
      );
      const unfit = tested.flat();
      if (unfit.length > 0)
        throw new Error(`modules of ${fileNameOf(folder)} fail the self-test: ${unfit.join(' | ')}`);
      const modules = taken.map(({ module }) => module);
      // Its texts, wherever they lay: they are part of the training's environment.
      return trainOnModules(context, { modules, maker: { kind, version, options: {} } });
    },
});

export const environments: ArmKind = {
  ...kind,
  routable: false,
  starts: 'beside',
  planned: plannedWhole,
  reads: (spec) => ({ field: fieldOf(spec, 'modules'), path: kind.read(spec).modules, holds: 'modules' }),
};
