/** How long base rollouts are as a language model is shown them. Invariant: measured where there are any of the kind, else said to be assumed. */
import { join } from 'node:path';
import { compactOne } from '../../domain/transcript';
import { jsonText } from '../../domain/messages';
import type { Report } from '../../domain/report';
import { rolloutSchema } from '../../domain/rollout';
import { tokensOf } from '../../language-model/costs';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Home } from '../project';
import type { Range } from './counts';

export interface TrajectoryTokens extends Range {
  basis: 'measured' | 'assumed';
  source: string;
}

const ASSUMED: TrajectoryTokens = {
  low: 4 * 40,
  high: 20 * 200,
  basis: 'assumed',
  source: 'no measurement: 4 to 20 turns of 40 to 200 tokens once they are compacted',
};

/** By the newest report of like campaigns that has base rollouts in the home's store. */
export async function trajectoryTokens(reports: readonly Report[], home: Home): Promise<TrajectoryTokens> {
  const store = openFolderStore(join(home.root, 'artifacts'));
  const line = jsonText.pipe(rolloutSchema);
  for (const { campaign, rollouts } of reports) {
    const [ref] = rollouts?.byPurpose.find(({ purpose }) => purpose === 'base_rollouts')?.scored.from ?? [];
    // What is damaged or gone is measured in the next one.
    const text = ref && (await store.read(ref).catch(() => undefined))?.toString('utf8');
    const lengths = (text ?? '').split('\n').flatMap((one) => {
      const rollout = one === '' ? undefined : line.safeParse(one).data;
      return rollout?.status === 'scored' ? [tokensOf(compactOne({ rollout, id: 'r100' }).length)] : [];
    });
    if (lengths.length === 0) continue;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    return {
      low: mean,
      high: mean,
      basis: 'measured',
      source: `campaign ${campaign.name}, ${lengths.length} base rollouts`,
    };
  }
  return ASSUMED;
}
