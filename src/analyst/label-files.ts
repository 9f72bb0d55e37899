/**
 * Label files run_NN.json as the method's authors publish them. A file that is not a complete, consistent labeling pass is refused; nothing is
 * repaired or left out.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type LabelPass, labelPassSchema } from '../domain/capability';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { checkPartition } from '../domain/selection';

export interface LabelFile {
  file: string;
  pass: LabelPass;
}

/**
 * All run_NN.json of a folder, in the order of their numbers; other files are left alone. `field` is what named the folder.
 * @throws BadInput; the message's first line names the cause and the fix, further lines are problems of the same kind.
 */
export async function readLabelFiles({ folder, field }: { folder: string; field: string }): Promise<LabelFile[]> {
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

const badInput = (...lines: string[]) => new OutsideFailure('BadInput', lines.join('\n'));

async function readPass(file: string): Promise<LabelFile> {
  const text = await readFile(file, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badInput(`${file}: not JSON (${reasonOf(error).replace(/\s*\n\s*/g, ' ')}); write the file again`);
  }
  const { data: pass, error } = labelPassSchema.safeParse(value);
  const [issue] = error?.issues ?? [];
  if (!pass)
    throw badInput(
      `${file}: ${issue?.path.join('.') || 'file'}: ${issue?.message}; see docs/analysis.md for the shape`,
    );
  const [problem, ...others] = checkPartition(pass);
  if (problem !== undefined) throw badInput(`${file}: ${problem}`, ...others);
  return { file, pass };
}
