/**
 * The given analyst: capabilities that somebody else found, in a file, with or without the labels of their passes. Invariants: what is read is
 * whole, or BadInput names file, field, value and fix; its identity holds digests of what the files hold, so that an edited file is another
 * analyst and a moved one is not.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { digest } from '../artifacts/hash';
import { type Candidate, capabilityNameSchema, type LabelPass } from '../domain/capability';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { defineKind, type Identity } from '../domain/kinds';
import type { Analyst } from './analyst';
import { type LabelFile, readLabelFiles } from './label-files';

const fileSchema = z.strictObject({
  capabilities: z
    .array(
      z.strictObject({
        name: capabilityNameSchema,
        definition: z.string().min(1),
        examples: z.array(z.string()).default([]),
      }),
    )
    .min(1),
  /** Folder with run_NN.json; relative to the file. */
  labels: z.string().min(1).optional(),
});

interface GivenFile {
  capabilities: Candidate[];
  /** Absent: the capabilities are selected outright. */
  labels?: { folder: string; passes: LabelPass[] };
}

const SHAPE = 'see docs/analysis.md for the shape';

export async function readGivenFile(file: string): Promise<GivenFile> {
  const { capabilities, labels } = parseFields(file, await readYaml(file));
  const names = capabilities.map(({ name }) => name);
  const twice = names.findIndex((name, n) => names.indexOf(name) !== n);
  if (twice >= 0)
    throw badInput(`${file}: capabilities.${twice}.name is "${names[twice]}" a second time; give each its own name`);
  if (labels === undefined) return { capabilities };
  const folder = resolve(dirname(file), labels);
  const files = await readLabelFiles({ folder, field: `${file}: labels` });
  for (const one of files) checkNames({ file, names, ...labelNames(one) });
  return { capabilities, labels: { folder, passes: files.map(({ pass }) => pass) } };
}

const badInput = (message: string) => new OutsideFailure('BadInput', message);

/** JSON is YAML. */
async function readYaml(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw badInput(
      `analyst.capabilities is ${file}, which can't be read (${reasonOf(error)}); name a file, relative to the campaign file`,
    );
  });
  try {
    return parse(text);
  } catch (error) {
    const [reason = ''] = reasonOf(error).split('\n');
    throw badInput(`${file}: not YAML or JSON (${reason.replace(/:$/, '')}); write it again, ${SHAPE}`);
  }
}

function parseFields(file: string, fields: unknown): z.infer<typeof fileSchema> {
  const parsed = fileSchema.safeParse(fields);
  if (parsed.success) return parsed.data;
  const { path = [], message = '' } = parsed.error.issues[0] ?? {};
  const value = path.reduce<unknown>((inner, name) => (inner as Record<PropertyKey, unknown> | null)?.[name], fields);
  const shown = value === undefined ? 'missing' : (JSON.stringify(value) ?? '').slice(0, 80);
  throw badInput(
    path.length === 0
      ? `${file}: ${message}; ${SHAPE}`
      : `${file}: ${path.join('.')} is ${shown}: ${message}; ${SHAPE}`,
  );
}

const labelNames = ({ file, pass }: LabelFile) => ({ labelFile: file, labeled: Object.keys(pass.labels) });

function checkNames(at: { file: string; names: string[]; labelFile: string; labeled: string[] }): void {
  const { file, names, labelFile, labeled } = at;
  const unlabeled = names.filter((name) => !labeled.includes(name));
  const unknown = labeled.filter((name) => !names.includes(name));
  if (unlabeled.length > 0)
    throw badInput(
      `${labelFile}: labels has no "${unlabeled.join('", "')}" of ${file}; label it, or leave it out there`,
    );
  if (unknown.length > 0)
    throw badInput(
      `${labelFile}: labels has "${unknown.join('", "')}", which capabilities of ${file} lacks; add it there`,
    );
}

export const given = defineKind({
  kind: 'given',
  version: '1',
  options: {
    capabilities: z
      .string()
      .min(1)
      .describe('File with the capabilities, and the labels of their passes if there are any (docs/analysis.md).'),
  },
  paths: ['capabilities'],
  open: ({ capabilities }, identity) => openGiven(capabilities, identity),
});

async function openGiven(file: string, { kind, version }: Identity): Promise<Analyst> {
  const { capabilities, labels } = await readGivenFile(file);
  const options = {
    capabilities: digest(capabilities),
    ...(labels && { labels: digest(labels.passes) }),
  };
  return {
    identity: { kind, version, options },
    ignoresSeed: true,
    ...(labels ? { selects: 'by labels' } : { selects: 'outright', selected: capabilities.length }),

    unsuited(_, { maxCandidates, passes }) {
      const { length } = capabilities;
      if (length > maxCandidates)
        return `${file}: capabilities are ${length}, selection.maxCandidates is ${maxCandidates}; set it to ${length}`;
      const files = labels?.passes.length ?? passes;
      return files < passes ? tooFew(passes) : undefined;
    },

    async discover({ quotable }) {
      const quoted = (keys: string[]) => keys.filter((key) => quotable.has(key));
      const candidates = capabilities.map((one) => ({ ...one, examples: quoted(one.examples) }));
      return { candidates, faults: [] };
    },

    async label({ pass }) {
      if (!labels) throw new Error(`${file}: labels is missing, so there is no pass ${pass} to give`);
      const found = labels.passes[pass];
      if (found) return found;
      throw new OutsideFailure('BadInput', tooFew(pass + 1));
    },
  };

  function tooFew(passes: number): string {
    const { folder, passes: files } = labels ?? { folder: '', passes: [] };
    return `${file}: labels ${folder} holds ${files.length} files, not ${passes}; set selection.passes to ${files.length}`;
  }
}
