/** From an environment's spec in a campaign file to the environment. Invariant: the engine sees one interface, whatever is behind it. */
import type { ArtifactStore } from '../artifacts/store';
import type { EnvironmentSpec } from '../domain/campaign';
import type { Environment } from '../domain/environment';
import { openSandboxEnvironment } from '../synthesis/sandbox-environment';
import { openProcessEnvironment } from './process';
import { createShop } from './shop';

export async function openEnvironment(
  spec: EnvironmentSpec,
  { store }: { store: ArtifactStore },
): Promise<Environment> {
  switch (spec.kind) {
    case 'builtin':
      return createShop();
    case 'process':
      return openProcessEnvironment({ command: spec.command, ...(spec.cwd !== undefined && { cwd: spec.cwd }) });
    case 'sandbox':
      return openSandboxEnvironment({ module: spec.module, store });
  }
}
