/** The programs of the benchmarks that ship with the project. Invariant: each is a process of the environment protocol and nothing more. */
import { resolve } from 'node:path';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { ProcessCommand } from './connection';

const repository = resolve(__dirname, '..', '..');
/** Made by `make bridges` and `make bridges-toolsandbox`: apart from the trainer's and each other's, which pin other versions. */
const python = (environment: string) => resolve(repository, environment, 'bin', 'python');

/** What to start for an environment that is a process. */
export function programOf(spec: Extract<EnvironmentSpec, { processes: number }>): ProcessCommand {
  switch (spec.kind) {
    case 'process':
      return { command: spec.command, ...(spec.cwd !== undefined && { cwd: spec.cwd }) };
    case 'tau2': {
      const checkout = spec.checkout === undefined ? [] : ['--checkout', spec.checkout];
      return {
        command: [python('.venv-bridges'), '-m', 'bridges.tau2', ...spec.domains, ...checkout],
        cwd: repository,
      };
    }
    case 'toolsandbox':
      return {
        command: [
          ...[python('.venv-toolsandbox'), '-m', 'bridges.toolsandbox', spec.folder],
          ...['--held-out', String(spec.heldOut)],
        ],
        cwd: repository,
      };
  }
}
