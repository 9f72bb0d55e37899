/**
 * Base models of the studies: the shipped one, and others with other planted lacks, made where they are missing. Invariant: a folder that is
 * there is whole; one that missed a gate is used, and says so.
 */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Skill } from '../src/environments/shop/tasks';
import { reasonIn, runProgram } from './processes';
import { say } from './say';
import { repository, type Settings } from './settings';

export interface Base {
  /** Part of a campaign's name, with its fields. */
  name: string;
  path: string;
}

export const shipped: Base = { name: 'shipped', path: join(repository, 'models', 'base') };

/** Where `make test-plantings` keeps those that it has made. */
const OF_TESTS = join(repository, '.cache', 'plantings');

/** A base that lacks the skills in this share of its demonstrations. Half an hour and more where it is not there yet. */
export async function baseWith(o: {
  skills: readonly Skill[];
  fraction: number;
  settings: Settings;
  signal: AbortSignal;
}): Promise<Base> {
  const { skills, fraction, settings, signal } = o;
  const name = skills.join('-') + (fraction === 0.75 ? '' : `-${fraction}`);
  const places = [join(OF_TESTS, name), join(settings.home, 'bases', name)];
  const there = places.find((path) => existsSync(join(path, 'config.json')));
  if (there) return { name, path: there };
  const path = places[1] as string;
  const making = `${path}.making`;
  mkdirSync(dirname(path), { recursive: true });
  say(`base model ${name}: begins or goes on`);
  const log = join(settings.home, 'logs', `base-${name}.log`);
  const lacks = skills.flatMap((skill) => ['--lack', `${skill}=${fraction}`]);
  const args = ['-m', 'trainer.base_model', '--out', making, ...lacks];
  const command = join(repository, '.venv', 'bin', 'python');
  const code = await runProgram({ title: `base model ${name}`, command, args, cwd: repository, log, signal });
  // Exit code 1 with a folder: it is made, and missed a gate.
  if (!existsSync(join(making, 'base.json')))
    throw new Error(`base model ${name} was not made (exit code ${code}: ${reasonIn(log)}); its log is ${log}`);
  renameSync(making, path);
  return { name, path };
}
