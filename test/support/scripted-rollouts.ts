/** The real engine over an environment with a scripted policy: one rollout of each task, in order. */
import { openFolderStore } from '../../src/store/open-store';
import type { Environment } from '../../src/domain/environment';
import type { Rollout } from '../../src/domain/rollout';
import type { PolicyClient } from '../../src/policy/client';
import { played } from './played';
import { newFolder } from './temporary-folder';

export async function scriptedRollouts({
  maxSteps,
  ...given
}: {
  environment: Environment;
  client: PolicyClient;
  tasks: string[];
  maxSteps?: number | undefined;
}): Promise<Rollout[]> {
  const { records } = await played({
    ...given,
    store: openFolderStore(newFolder()),
    ...(maxSteps !== undefined && { maxSteps }),
    policy: { base: 'scripted', adapters: [] },
    sampling: { temperature: 0, topP: 1, maxTokens: 1 },
  });
  return records;
}
