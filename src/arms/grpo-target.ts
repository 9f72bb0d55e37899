/** Trains one adapter with GRPO on the target itself. */
import { describeKind } from '../domain/kinds';
import { type ArmKind, plannedWhole } from './arm';

export const grpoTarget = {
  ...describeKind({ kind: 'grpo_target', version: '1', options: {} }),
  trainsOnTarget: true,
  planned: plannedWhole,
} satisfies ArmKind;
