/** GRPO on the target itself. */
import { defineKind } from '../../domain/kind';
import { plannedWhole, type Arm, type ArmKind } from './arm';
import { trainOnTarget } from './target';

export const grpoTarget: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'grpo_target',
    version: '1',
    options: {},
    open: (_options, maker) => (context) => trainOnTarget(context, { maker }),
  }),
  routable: false,
  starts: 'beside',
  planned: plannedWhole,
};
