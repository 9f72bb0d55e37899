/** The bridges to benchmarks that ship with the project. Invariant: each is a process of the environment protocol and nothing more. */
import { join, resolve } from 'node:path';
import type { ProcessCommand } from '../connection';

const repository = resolve(__dirname, '..', '..', '..');

/** A Python module of the project, run by the environment that is installed for it: bridges pin versions that others don't. */
export const bridgeProgram = (o: { environment: string; module: string; args: readonly string[] }): ProcessCommand => ({
  command: [join(repository, o.environment, 'bin', 'python'), '-m', o.module, ...o.args],
  cwd: repository,
});
