/**
 * Step 1 of the method over rollouts of a fixture: the analyst that asks a language model, through the real client, with the endpoint of
 * recorded replies. Invariant: nothing but the fixture and the replies decides what comes out.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { analysts } from '../../src/analyst';
import { openFolderStore } from '../../src/artifacts/open-store';
import type { ArtifactStore } from '../../src/artifacts/store';
import { selectionRuleSchema } from '../../src/domain/campaign';
import type { Discovery, LabelPass, Selection } from '../../src/domain/capability';
import { kindOf } from '../../src/domain/kinds';
import { selectCapabilities } from '../../src/domain/selection';
import { openLedger } from '../../src/llm/ledger';
import { settleSpending, spentOf } from '../../src/llm/spending';
import type { Ledger } from '../../src/llm/model';
import type { Spent } from '../../src/domain/endpoints';
import { readFixtureRollouts, type FixtureRollouts } from './fixture-rollouts';
import { startRecordedReplies, type RecordedRequest } from './recorded-replies';
import { recordedFolder } from './recorded-set';

const evaluationSchema = z.strictObject({
  /** As in readFixtureRollouts(). */
  fixture: z.string(),
  /** Options of the analyst `llm`, besides the endpoint. */
  analyst: z.record(z.string(), z.unknown()).default({}),
  selection: selectionRuleSchema,
  seed: z.number().int().default(1),
  /** By planted skill: the names of capabilities that mean it. Written by hand once the replies are there. */
  capabilities: z.record(z.string(), z.array(z.string())).default({}),
  /** Capabilities whose environments have recorded replies. */
  environments: z.array(z.string()).default([]),
});
type Evaluation = z.infer<typeof evaluationSchema>;

/** `evaluation.yaml` of a set. */
export const readEvaluation = (set: string): Evaluation =>
  evaluationSchema.parse(parse(readFileSync(join(recordedFolder, set, 'evaluation.yaml'), 'utf8')));

interface RecordedAnalysis extends FixtureRollouts {
  discovery: Discovery;
  passes: LabelPass[];
  selection: Selection;
  requests: RecordedRequest[];
  spent: Spent[];
}

/** What asks the endpoint of recorded replies, in a store of its own; `spec`: of a kind that asks a language model. */
export async function withRecorded<Result>(
  { set, record }: { set: string; record?: string | undefined },
  use: (o: Recorded) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'recorded-'));
  const server = await startRecordedReplies({ set, record });
  const stop = new AbortController();
  try {
    const store = openFolderStore(folder);
    return await use({
      store,
      spec: { kind: 'llm', url: server.url, model: 'recorded', timeoutSeconds: 86_400 },
      work: {
        ledger: openLedger({ store, campaign: set, budget: {}, role: 'analyst' }),
        progress: () => {},
        signal: stop.signal,
      },
      requests: server.requests,
    });
  } finally {
    stop.abort();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
interface Recorded {
  store: ArtifactStore;
  spec: { kind: 'llm' } & Record<string, unknown>;
  work: { ledger: Ledger; progress: () => void; signal: AbortSignal };
  requests: RecordedRequest[];
}

/** What was found, without labels. `record`: a folder for questions without a reply, which then wait for one; without it they fail. */
export const discoverRecorded = (o: { set: string; record?: string }): Promise<RecordedAnalysis> =>
  analyse({ ...o, most: 0 });

/** `record` as above. */
export const analyseRecorded = (o: { set: string; record?: string }): Promise<RecordedAnalysis> =>
  analyse({ ...o, most: Infinity });

/** `most`: labeling passes. */
function analyse({ most, ...o }: { set: string; record?: string; most: number }): Promise<RecordedAnalysis> {
  const { fixture, analyst: options, selection: rule, seed } = readEvaluation(o.set);
  const { rollouts, description } = readFixtureRollouts(fixture);
  return withRecorded(o, async ({ store, spec, work, requests }) => {
    const analyst = await kindOf(analysts, spec).open({ ...spec, ...options }, undefined);
    const problem = analyst.unsuited?.(description, rule);
    if (problem !== undefined) throw new Error(problem);
    const input = { rollouts, description, seed, ...work };
    const quotable = new Set(rollouts.map(({ key }) => key));
    const discovery = await analyst.discover({ ...input, quotable, rule });
    const { candidates } = discovery;
    const passes = await Promise.all(
      Array.from({ length: Math.min(most, rule.passes) }, (_, pass) => analyst.label({ ...input, candidates, pass })),
    );
    const selection = selectCapabilities({ passes, rule });
    await settleSpending(store);
    const spent = await spentOf({ store, campaign: o.set });
    return { rollouts, description, discovery, passes, selection, requests, spent };
  });
}
