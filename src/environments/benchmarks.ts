/**
 * tau2-bench and ToolSandbox (docs/benchmarks.md): Python modules of the project that speak the
 * environment protocol, each run by the Python environment that is installed for it, since bridges pin versions that
 * others don't.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../store/project-root';
import type { ProcessCommand } from './connection';
import type { EnvironmentKind } from './kinds';
import { processOptions, programKind } from './process';

/** A module of the project's, by the Python that is installed for it. */
const bridge = (environment: string, module: string, args: readonly string[]): ProcessCommand => ({
  command: [join(projectRoot, environment, 'bin', 'python'), '-m', module, ...args],
  cwd: projectRoot,
});

const domainSchema = z.enum(['mock', 'airline', 'retail', 'telecom']);
export type Tau2Domain = z.infer<typeof domainSchema>;

export const tau2Program = (o: { domains: readonly Tau2Domain[]; checkout?: string | undefined }): ProcessCommand =>
  bridge('.venv-bridges', 'bridges.tau2', [
    ...o.domains,
    ...(o.checkout === undefined ? [] : ['--checkout', o.checkout]),
  ]);

export const toolsandboxProgram = ({ folder, heldOut }: { folder: string; heldOut: number }): ProcessCommand =>
  bridge('.venv-toolsandbox', 'bridges.toolsandbox', [folder, '--held-out', String(heldOut)]);

export const tau2: EnvironmentKind = {
  ...programKind({
    kind: 'tau2',
    options: {
      domains: z.array(domainSchema).min(1).describe('Domains.'),
      checkout: z.string().optional().describe('Folder of a checkout, instead of the package.'),
      ...processOptions,
    },
    paths: ['checkout'],
    runs: ['checkout'],
    program: tau2Program,
  }),
  remedy: 'install it with `make bridges`; a folder in target.checkout must hold src/tau2',
  needsUser: true,
};

export const toolsandbox: EnvironmentKind = {
  ...programKind({
    kind: 'toolsandbox',
    options: {
      folder: z.string().describe('Checkout of ToolSandbox.'),
      heldOut: z.number().min(0).lt(1).default(0).describe('Share of families kept for `test`.'),
      processes: processOptions.processes,
      silenceSeconds: processOptions.silenceSeconds,
      passEnv: processOptions.passEnv,
      user: processOptions.user,
    },
    paths: ['folder'],
    runs: ['folder'],
    program: toolsandboxProgram,
  }),
  remedy: 'install it with `make bridges-toolsandbox`; the folder in target.folder must hold tool_sandbox',
  needsUser: true,
};
