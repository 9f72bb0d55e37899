/** From an environment's spec in a campaign file to the environment. Invariant: the engine sees one interface, whatever is behind it. */
import type { ArtifactStore } from '../artifacts/store';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { Environment } from '../domain/environment';
import { openPartners } from '../partners/open';
import type { Partners } from '../partners/types';
import { openSandboxEnvironment } from '../synthesis/sandbox-environment';
import { programOf } from './bridges';
import { openProcessEnvironment } from './process';
import { createShop } from './shop';

export async function openEnvironment(
  spec: EnvironmentSpec,
  /** `partners` take the place of the models that the spec names. */
  { store, partners }: { store: ArtifactStore; partners?: Partners },
): Promise<Environment> {
  switch (spec.kind) {
    case 'builtin':
      return createShop();
    case 'process':
    case 'tau2':
    case 'toolsandbox':
      return openProcessEnvironment({
        ...programOf(spec),
        processes: spec.processes,
        ...(partners ?? openPartners(spec)),
      });
    case 'sandbox':
      return openSandboxEnvironment({ module: spec.module, store });
  }
}
