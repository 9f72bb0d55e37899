/** `campaign check MODULE.js`: the static checks, self-test and audit that a campaign runs on a module of a synthesized environment. */
import { readFile } from 'node:fs/promises';
import { reasonOf } from '../../domain/failures';
import type { Finding } from '../../environments/conformance';
import { serveEnvironment } from '../../environments/serve';
import { openModule, sandboxEnvironment } from '../../sandbox/module';
import { selfTest } from '../../sandbox/self-test';
import { staticFindings } from '../../sandbox/source';
import { sha256 } from '../../store/hash';
import { InputError } from '../errors';

export const isModuleFile = (path: string): boolean => /\.[mc]?js$/.test(path);

/** The program behind exported environments: serves a module on stdin and stdout. */
export async function serveModule(file: string): Promise<void> {
  const source = await readModule(file);
  const environment = await sandboxEnvironment({ module: openModule({ source }), version: sha256(source) });
  await serveEnvironment({ environment });
}

const readModule = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw new InputError({
      ...{ code: 'unreadable_file', field: 'module', value: file },
      ...{ reason: `${file} cannot be read: ${reasonOf(error)}`, fix: 'name a module, or a program after --' },
    });
  });

export async function checkModule({ file, say }: { file: string; say: (line: string) => void }): Promise<Finding[]> {
  const source = await readModule(file);
  const found = staticFindings(source);
  say('self-test and audit: 102 seeds, some seconds');
  const { findings } = await selfTest({ source });
  const fix = 'correct the module';
  return [
    ...found.map((problem) => ({ check: 'static checks', problem, fix })),
    ...findings.map((problem) => ({ check: 'self-test and audit', problem, fix })),
  ];
}
