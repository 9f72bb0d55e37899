/**
 * HOME/<campaign>/status.json: where a campaign stood when it was last looked at, for when no server runs. Invariant: replaced whole, so that
 * a kill at any moment leaves the one before; one that can't be read counts as none.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { waitingSchema } from '../../domain/approval';
import { stages } from '../../domain/campaign';
import { withKnown, type Snapshot } from './snapshot';

export interface LastStatus {
  snapshot: Snapshot;
  /** When it was so; ms since the epoch. */
  at: number;
}

const fileOf = (home: string, name: string): string => join(home, name, 'status.json');

/** `home` is the home's folder. What no worker tells any more is kept from before. A full disk costs the file, not the campaign. */
export async function writeStatus({ home, snapshot }: { home: string; snapshot: Snapshot }): Promise<void> {
  const { name } = snapshot;
  const kept = snapshot.progress ? snapshot : withKnown(snapshot, readStatus({ home, name }));
  const file = fileOf(home, name);
  // The home has one supervisor, so the name beside it is nobody else's.
  const aside = `${file}.part`;
  try {
    await mkdir(join(home, name), { recursive: true });
    await writeFile(
      aside,
      JSON.stringify({ at: Date.now(), snapshot: kept } satisfies z.input<typeof lastStatusSchema>),
    );
    await rename(aside, file);
  } catch (error) {
    await rm(aside, { force: true });
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

export function readStatus({ home, name }: { home: string; name: string }): LastStatus | undefined {
  try {
    const { at, snapshot } = lastStatusSchema.parse(JSON.parse(readFileSync(fileOf(home, name), 'utf8')));
    return snapshot.name === name ? { at, snapshot: snapshot as Snapshot } : undefined;
  } catch {
    return undefined;
  }
}

const stepStatus = z.enum(['waiting', 'running', 'done', 'failed']);
const childRef = { workflowId: z.string(), kind: z.enum(['capability', 'arm']), name: z.string() };
const ratio = { done: z.number(), total: z.number() };
const heartbeatSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('rollouts'), title: z.string(), ...ratio, broken: z.number() }),
  z.object({
    kind: z.literal('train'),
    step: z.number(),
    steps: z.number().optional(),
    reward: z.number().optional(),
    rollouts: z.object(ratio).optional(),
    waitsFor: z.string().optional(),
  }),
  z.object({ kind: z.literal('analysis'), title: z.string(), ...ratio, characters: z.number().optional() }),
]);
const activitySchema = z.object({
  id: z.string(),
  workflowId: z.string(),
  type: z.string(),
  queue: z.string().optional(),
  state: z.enum(['scheduled', 'started', 'cancelling']),
  worker: z.string().optional(),
  attempt: z.number(),
  startedAt: z.number().optional(),
  nextAttemptAt: z.number().optional(),
  heartbeat: heartbeatSchema.optional(),
  heartbeatAt: z.number().optional(),
  lastFailure: z.string().optional(),
  lastFailureType: z.string().optional(),
});
const troubleSchema = z.object({
  title: z.string(),
  retry: z.enum(['never', 'own', 'outside', 'preempted']),
  type: z.string(),
  reason: z.string(),
  since: z.number(),
  nextAt: z.number(),
  attempt: z.object({ number: z.number(), of: z.number() }).optional(),
  needsPerson: z.boolean().optional(),
});
const childProgressSchema = z.object({
  name: z.string(),
  phase: z.enum(['synthesize', 'self-test', 'calibrate', 'approval', 'train', 'validate', 'done', 'failed']),
  round: z.number(),
  detail: z.string(),
  paused: z.boolean(),
  waiting: waitingSchema.optional(),
  troubles: z.array(troubleSchema).optional(),
});
const progressSchema = z.object({
  campaign: z.string(),
  seed: z.number(),
  paused: z.boolean(),
  stages: z.array(z.object({ name: z.enum(stages), status: stepStatus, detail: z.string() })),
  children: z.array(z.object({ ...childRef, status: stepStatus, detail: z.string() })),
  rollouts: z.object({
    scored: z.number(),
    broken: z.number(),
    causes: z
      .array(z.object({ type: z.string(), message: z.string(), count: z.number(), task: z.string() }))
      .optional(),
  }),
  waiting: waitingSchema.optional(),
  troubles: z.array(troubleSchema).optional(),
  need: z.object({ what: z.string(), since: z.number(), text: z.string() }).optional(),
});
const lastStatusSchema = z.object({
  at: z.number(),
  snapshot: z.object({
    name: z.string(),
    runId: z.string(),
    status: z.string(),
    paused: z.boolean(),
    startedAt: z.number(),
    closedAt: z.number().optional(),
    failure: z.string().optional(),
    failures: z.number().optional(),
    stage: z.enum(stages).optional(),
    stoppedAfter: z.enum(stages).optional(),
    attention: z.string().optional(),
    progress: progressSchema.optional(),
    progressAt: z.number().optional(),
    activities: z.array(activitySchema),
    children: z.array(
      z.object({
        ...childRef,
        failures: z.number().optional(),
        progress: childProgressSchema.optional(),
        activities: z.array(activitySchema),
      }),
    ),
  }),
});
