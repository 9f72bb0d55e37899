/**
 * ToolSandbox, from a checkout of the user's (docs/toolsandbox.md).
 */
import { z } from 'zod';
import { defineKind } from '../domain/kinds';
import { OVERALL, type PublishedArm } from '../domain/presets';
import type { ProcessCommand } from './connection';
import type { EnvironmentContext, EnvironmentKind } from './kinds';
import { bridgeProgram, maxSilenceOf, openProgram, partnerModels, processLimits } from './process';

const python = { environment: '.venv-toolsandbox', command: 'make bridges-toolsandbox' };

export const toolsandboxProgram = ({ folder, heldOut }: { folder: string; heldOut: number }): ProcessCommand =>
  bridgeProgram({
    environment: python.environment,
    module: 'bridges.toolsandbox',
    args: [folder, '--held-out', String(heldOut)],
  });

const arm = (name: string, perfect: number, meanReward: number): PublishedArm => ({
  arm: name,
  cells: [{ group: OVERALL, tasks: 129, successRate: perfect / 129, solved: perfect, meanReward }],
});

const kind = defineKind({
  kind: 'toolsandbox',
  version: '1',
  options: {
    folder: z.string().describe('Folder of a checkout of ToolSandbox.'),
    heldOut: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe(
        'Fraction of the families of scenarios that only `test` has. With 0, `test` is the 129 base scenarios, as published, and `train` their variants with other tools.',
      ),
    ...processLimits,
    user: partnerModels.user,
  },
  paths: ['folder'],
  maxSilenceSeconds: maxSilenceOf,
  open: ({ folder, heldOut, ...options }, _identity, context: EnvironmentContext) =>
    openProgram(toolsandboxProgram({ folder, heldOut }), options, context),
});

export const toolsandbox: EnvironmentKind = {
  ...kind,
  program: kind.read,
  python,
  folders: [{ option: 'folder', name: 'ToolSandbox', holds: 'tool_sandbox' }],
  needsUser: true,
  checkArguments: {
    usage: 'FOLDER',
    example: '../ToolSandbox',
    variable: 'TOOLSANDBOX',
    options: ([folder]) => ({ folder }),
  },
  published: [
    arm('base', 19, 0.411),
    arm('ADP', 19, 0.422),
    arm('grpo_target', 22, 0.519),
    arm('AWM', 20, 0.504),
    arm('GEPA', 22, 0.52),
    arm('one capability', 22, 0.514),
    arm('trace', 26, 0.552),
  ],
};
