/** One LoRA on the environments of all capabilities, mixed: what `trace` trains apart. */
import { defineKind } from '../../domain/kinds';
import { plannedWhole, type Arm, type ArmKind } from './arm';
import { trainOnCapabilities } from './modules';

export const joint: ArmKind = {
  ...defineKind<Record<never, never>, Arm>({
    kind: 'joint',
    version: '1',
    options: {},
    open: (_options, maker) => (context) => trainOnCapabilities(context, { maker }),
  }),
  routable: false,
  starts: 'after',
  planned: plannedWhole,
};
