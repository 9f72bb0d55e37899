/** What the given analyst makes of a file, as a campaign would. */
import type { Candidate, LabelPass } from '../../src/domain/capability';
import { given } from '../../src/analyst/given';
import { noLedger } from './memory-ledger';

export async function openGiven(
  capabilities: string,
  count: number,
): Promise<{ candidates: Candidate[]; passes: LabelPass[] }> {
  const analyst = await given.open({ kind: 'given', capabilities }, undefined);
  const description = { name: 'x', version: '1', policy: '', tools: [], maxSteps: 1, hasReference: false };
  const work = {
    rollouts: [],
    description,
    seed: 1,
    ledger: noLedger,
    progress: () => {},
    signal: new AbortController().signal,
  };
  const { candidates } = await analyst.discover({ ...work, quotable: new Set(), rule: { maxCandidates: 10 } });
  const label = (pass: number) => analyst.label({ ...work, candidates, pass });
  return { candidates, passes: await Promise.all(Array.from({ length: count }, (_, pass) => label(pass))) };
}
