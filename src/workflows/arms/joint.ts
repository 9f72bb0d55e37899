/** One LoRA on the environments of all capabilities, mixed: what `trace` trains apart. */
import { defineKind } from '../../domain/kind';
import { plannedWhole, type Arm, type ArmKind } from './arm';
import { calibratedModules, trainOnModules } from './modules';

export const joint: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'joint',
    version: '1',
    options: {},
    open: (_options, maker) => async (context) => {
      const calibrated = calibratedModules(context);
      const outcome = await trainOnModules(context, { modules: calibrated, maker });
      return { ...outcome, builtOn: calibrated.map(({ capability }) => ({ capability, rollouts: 0 })) };
    },
  }),
  routable: false,
  starts: 'after',
  planned: plannedWhole,
};
