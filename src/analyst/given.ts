/**
 * The given analyst: selects all capabilities of a file. Errors name file, field, value and fix. Its identity contains a digest of the file's content, so
 * that an edited file is another analyst and a moved one is not.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { digest } from '../store/hash';
import { checkFile } from '../domain/allowed';
import { capabilityNameSchema } from '../domain/capability';
import { badInput, reasonOf } from '../domain/failures';
import { firstIssue } from '../domain/issues';
import { defineKind, type Identity } from '../domain/kinds';
import type { Analyst } from './analyst';

const fileSchema = z.strictObject({
  capabilities: z
    .array(
      z.strictObject({
        name: capabilityNameSchema,
        definition: z.string().min(1),
        examples: z.array(z.string()).default([]),
      }),
    )
    .min(1)
    .superRefine((all, context) => {
      const names = all.map(({ name }) => name);
      const twice = names.findIndex((name, n) => names.indexOf(name) !== n);
      const message = 'another one has this name; give each its own';
      if (twice >= 0) context.addIssue({ code: 'custom', path: [twice, 'name'], message });
    }),
  labels: z.undefined('label files were removed in 0.3; list the capabilities to train alone').optional(),
});
type GivenFile = Pick<z.infer<typeof fileSchema>, 'capabilities'>;

/** @throws BadInput that names file, field and value. */
export async function readGivenFile(file: string): Promise<GivenFile> {
  checkFile('analyst.capabilities', file);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw badInput(
      `analyst.capabilities is ${file}, which can't be read (${reasonOf(error)}); name a file, relative to the campaign file`,
    );
  });
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    const [reason = ''] = reasonOf(error).split('\n');
    throw badInput(`${file}: not YAML or JSON (${reason.replace(/:$/, '')}); write it as in docs/analysis.md`);
  }
  const { data, error } = fileSchema.safeParse(value);
  if (error) throw badInput(`${file}: ${firstIssue(error, value)}; see docs/analysis.md for the shape`);
  return { capabilities: data.capabilities };
}

export const given = defineKind({
  kind: 'given',
  version: '1',
  options: { capabilities: z.string().min(1).describe('File with capabilities (docs/analysis.md).') },
  given: {
    capabilities: async (file) => ({ [basename(file)]: JSON.stringify(await readGivenFile(file)) }),
  },
  open: ({ capabilities }, identity) => openGiven(capabilities, identity),
});

async function openGiven(file: string, { kind, version }: Identity): Promise<Analyst> {
  const { capabilities } = await readGivenFile(file);
  return {
    identity: { kind, version, options: { capabilities: digest(capabilities) } },
    ignoresSeed: true,
    selects: 'outright',
    selected: capabilities.length,

    async discover({ quotable }) {
      const quoted = (keys: string[]) => keys.filter((key) => quotable.has(key));
      return { candidates: capabilities.map((one) => ({ ...one, examples: quoted(one.examples) })), faults: [] };
    },

    label: () => Promise.reject(new Error('given capabilities are not labeled')),
  };
}
