/**
 * The given analyst: capabilities that somebody else found, in a file, with or without the labels of their passes, in files run_NN.json as the method's
 * authors publish them. Bad input is named by file, field, value and fix, and nothing is repaired or left out; its identity holds digests of what the
 * files hold, so that an edited file is another analyst and a moved one is not.
 */
import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, resolve, join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { digest } from '../store/hash';
import { checkFile } from '../domain/allowed';
import { capabilityNameSchema, type LabelPass, labelPassSchema } from '../domain/capability';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import { defineKind, type Identity } from '../domain/kinds';
import type { Analyst } from './analyst';
import { checkPartition } from '../domain/selection';

interface LabelFile {
  file: string;
  pass: LabelPass;
}

/**
 * Reads all run_NN.json of a folder, in the order of their numbers; other files are left alone. `field` names the folder in errors.
 * @throws BadInput; the message's first line names the cause and the fix, further lines are problems of the same kind.
 */
async function readLabelFiles({ folder, field }: { folder: string; field: string }): Promise<LabelFile[]> {
  const entries = await readdir(folder).catch(() => {
    throw badInput(`${field} ${folder}: no such folder; name the one with the files run_NN.json`);
  });
  const names = entries
    .flatMap((name) => {
      const number = /^run_(\d+)\.json$/.exec(name)?.[1];
      return number === undefined ? [] : [{ name, number: Number(number) }];
    })
    .sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1));
  if (names.length === 0)
    throw badInput(`${field} ${folder}: no file run_NN.json; name the passes run_00.json, run_01.json, ...`);
  const files = await Promise.all(names.map(({ name }) => readPass(join(folder, name))));
  if (files.every(({ pass }) => Object.keys(pass.labels).length === 0))
    throw badInput(
      `${field} ${folder}: no capability in any of ${files.length} files; "labels" must name at least one`,
    );
  return files;
}

function checkUnicode(file: string, value: unknown): unknown {
  const half = findHalfCharacter(value)?.join('.');
  if (half !== undefined) throw badInput(`${file}: ${half} ${HALF_CHARACTER_PROBLEM}`);
  return value;
}

const badInput = (...lines: string[]) => new OutsideFailure('BadInput', lines.join('\n'));

async function readPass(file: string): Promise<LabelFile> {
  const text = await readFile(file, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badInput(`${file}: not JSON (${reasonOf(error).replace(/\s*\n\s*/g, ' ')}); write the file again`);
  }
  const { data: pass, error } = labelPassSchema.safeParse(checkUnicode(file, value));
  const [issue] = error?.issues ?? [];
  if (!pass)
    throw badInput(
      `${file}: ${issue?.path.join('.') || 'file'}: ${issue?.message}; see docs/analysis.md for the shape`,
    );
  const [problem, ...others] = checkPartition(pass);
  if (problem !== undefined) throw badInput(`${file}: ${problem}`, ...others);
  return { file, pass };
}

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
  /** Folder with run_NN.json; relative to the file. Without it the capabilities are selected outright. */
  labels: z.string().min(1).optional(),
});

export async function readGivenFile(file: string) {
  checkFile('analyst.capabilities', file);
  const { capabilities, labels } = parseFields(file, await readYaml(file));
  if (labels === undefined) return { capabilities };
  const folder = resolve(dirname(file), labels);
  checkFile('labels', folder);
  const passes: LabelPass[] = [];
  for (const { file: labelFile, pass } of await readLabelFiles({ folder, field: `${file}: labels` })) {
    const names = capabilities.map(({ name }) => name);
    const labeled = Object.keys(pass.labels);
    const lacks = names.filter((name) => !labeled.includes(name)).join('", "');
    const unknown = labeled.filter((name) => !names.includes(name)).join('", "');
    if (lacks) throw badInput(`${labelFile}: labels has no "${lacks}" of ${file}; label it, or leave it out there`);
    if (unknown)
      throw badInput(`${labelFile}: labels has "${unknown}", which capabilities of ${file} lacks; add it there`);
    passes.push(pass);
  }
  return { capabilities, labels: { folder, passes } };
}

/** The file and the labels of its passes, wherever they lie. */
async function filesOf(file: string): Promise<Record<string, string>> {
  const { capabilities, labels } = await readGivenFile(file);
  const passes = labels?.passes.map((pass, n) => [`labels/run_${n}.json`, JSON.stringify(pass)]) ?? [];
  const itself = JSON.stringify({ capabilities, ...(labels && { labels: 'labels' }) });
  return { [basename(file)]: itself, ...(Object.fromEntries(passes) as Record<string, string>) };
}

const SHAPE = 'see docs/analysis.md for the shape';

/** JSON is YAML. */
async function readYaml(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw badInput(
      `analyst.capabilities is ${file}, which can't be read (${reasonOf(error)}); name a file, relative to the campaign file`,
    );
  });
  try {
    return checkUnicode(file, parse(text));
  } catch (error) {
    if (error instanceof OutsideFailure) throw error;
    const [reason = ''] = reasonOf(error).split('\n');
    throw badInput(`${file}: not YAML or JSON (${reason.replace(/:$/, '')}); write it again, ${SHAPE}`);
  }
}

function parseFields(file: string, fields: unknown): z.infer<typeof fileSchema> {
  const { data, error } = fileSchema.safeParse(fields);
  if (data) return data;
  const { path = [], message = '' } = error.issues[0] ?? {};
  const value = path.reduce<unknown>((inner, name) => (inner as Record<PropertyKey, unknown> | null)?.[name], fields);
  const shown = value === undefined ? 'missing' : (JSON.stringify(value) ?? '').slice(0, 80);
  const field = path.length === 0 ? '' : `${path.join('.')} is ${shown}: `;
  throw badInput(`${file}: ${field}${message}; ${SHAPE}`);
}

export const given = defineKind({
  kind: 'given',
  version: '1',
  options: {
    capabilities: z.string().min(1).describe('File with capabilities, and optionally labels (docs/analysis.md).'),
  },
  given: { capabilities: filesOf },
  open: ({ capabilities }, identity) => openGiven(capabilities, identity),
});

async function openGiven(file: string, { kind, version }: Identity): Promise<Analyst> {
  const { capabilities, labels } = await readGivenFile(file);
  const files = labels?.passes.length ?? 0;
  const tooFew = (passes: number) =>
    `${file}: labels ${labels?.folder} holds ${files} files, not ${passes}; set selection.passes to ${files}`;
  return {
    identity: {
      kind,
      version,
      options: { capabilities: digest(capabilities), ...(labels && { labels: digest(labels.passes) }) },
    },
    ignoresSeed: true,
    ...(labels ? { selects: 'by labels' } : { selects: 'outright', selected: capabilities.length }),

    unsuited(_, { maxCandidates, passes }) {
      const { length } = capabilities;
      if (length > maxCandidates)
        return `${file}: capabilities are ${length}, selection.maxCandidates is ${maxCandidates}; set it to ${length}`;
      return labels && files < passes ? tooFew(passes) : undefined;
    },

    async discover({ quotable }) {
      const quoted = (keys: string[]) => keys.filter((key) => quotable.has(key));
      const candidates = capabilities.map((one) => ({ ...one, examples: quoted(one.examples) }));
      return { candidates, faults: [] };
    },

    async label({ pass }) {
      const labeled = labels?.passes[pass];
      if (labeled) return labeled;
      throw badInput(tooFew(pass + 1));
    },
  };
}
