/** Kinds that ask a language model, over rollouts of a fixture, through the real client, with the recorded replies of a set. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { analysts } from '../../src/analyst';
import { openFolderStore } from '../../src/store/open-store';
import { selectionRuleSchema } from '../../src/domain/campaign';
import type { Selection } from '../../src/domain/capability';
import { kindOf } from '../../src/domain/kinds';
import { selectCapabilities } from '../../src/domain/selection';
import { openLedger } from '../../src/llm/ledger';
import type { Ledger } from '../../src/llm/model';
import { readFixtureRollouts } from './fixture-rollouts';
import { recordedFolder, startRecordedReplies } from './recorded-replies';
import { newFolder } from './temporary-folder';

const SEED = 1;

const evaluationSchema = z.strictObject({
  /** The name that readFixtureRollouts() takes. */
  fixture: z.string(),
  /** Options of the analyst `llm`, besides the endpoint. */
  analyst: z.record(z.string(), z.unknown()),
  selection: selectionRuleSchema,
  /** Capabilities whose environments have recorded replies. */
  environments: z.array(z.string()),
});
type Evaluation = z.infer<typeof evaluationSchema>;

/** Reads `evaluation.yaml` of a set. */
export const readEvaluation = (set: string): Evaluation =>
  evaluationSchema.parse(parse(readFileSync(join(recordedFolder, set, 'evaluation.yaml'), 'utf8')));

interface Recorded {
  spec: { kind: 'llm' } & Record<string, unknown>;
  work: { ledger: Ledger; progress: () => void; signal: AbortSignal; seed: number };
}

/** Runs `use` against a server of the recorded replies, with a store of its own. */
export async function withRecorded<Result>(set: string, use: (o: Recorded) => Promise<Result>): Promise<Result> {
  const server = await startRecordedReplies(set);
  const stop = new AbortController();
  try {
    const ledger = openLedger({ store: openFolderStore(newFolder()), campaign: set, budget: {}, role: 'analyst' });
    return await use({
      spec: { kind: 'llm', url: server.url, model: 'recorded' },
      work: { ledger, progress: () => {}, signal: stop.signal, seed: SEED },
    });
  } finally {
    stop.abort();
    await server.close();
  }
}

type RecordedDiscovery = Awaited<ReturnType<typeof discover>>;

export const discoverRecorded = (set: string): Promise<RecordedDiscovery> =>
  withRecorded(set, (recorded) => discover(set, recorded));

export const analyseRecorded = (set: string): Promise<Selection> =>
  withRecorded(set, async (recorded) => {
    const { analyst, input, rule, discovery } = await discover(set, recorded);
    const { candidates } = discovery;
    const passes = Array.from({ length: rule.passes }, (_, pass) => analyst.label({ ...input, candidates, pass }));
    return selectCapabilities({ passes: await Promise.all(passes), rule });
  });

async function discover(set: string, { spec, work }: Recorded) {
  const { fixture, analyst: options, selection: rule } = readEvaluation(set);
  const { rollouts, description } = readFixtureRollouts(fixture);
  const analyst = await kindOf(analysts, spec).open({ ...spec, ...options }, undefined);
  const input = { rollouts, description, ...work };
  const quotable = new Set(rollouts.map(({ key }) => key));
  return { analyst, input, rule, discovery: await analyst.discover({ ...input, quotable, rule }) };
}
