/** Trains one adapter with GRPO on a set of environments that take turns. */
import { z } from 'zod';
import { armName } from '../domain/campaign';
import { describeKind, type KindSpec } from '../domain/kinds';
import { type ArmKind, plannedWhole } from './arm';

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

const kind = describeKind<{ from: typeof from }>({
  kind: 'environments',
  version: '2',
  options: { from },
  given: { 'from.folder': '.js' },
});

const folderOf = (spec: KindSpec): string | undefined => {
  const { from: source } = kind.read(spec);
  return typeof source === 'object' && 'folder' in source ? source.folder : undefined;
};

export const environments = {
  ...kind,
  buildsOnCapabilities: (spec) => folderOf(spec) === undefined,
  planned: plannedWhole,
  reads(spec) {
    const path = folderOf(spec);
    return path === undefined ? undefined : { field: `arms.${armName(spec)}.from.folder`, path };
  },
} satisfies ArmKind;
