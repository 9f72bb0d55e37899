/** Recorded histories still replay: a workflow change that breaks running campaigns fails here, before it is deployed. */
import { DeterminismViolationError } from '@temporalio/workflow';
import { Worker } from '@temporalio/worker';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataConverter, quiet, workflowBundle } from '../workflows/environment';

jest.setTimeout(120_000);
quiet();
const folder = join(__dirname, 'histories');
/** Child ids are derived from the workflow's own id, so replay needs it. */
const ids = readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((file) =>
  file.endsWith('.json') ? [file.slice(0, -'.json'.length)] : [],
);
const read = (id: string): string => readFileSync(join(folder, `${id}.json`), 'utf8');
const replay = async (id: string, history = read(id)): Promise<void> =>
  Worker.runReplayHistory({ workflowBundle: await workflowBundle(), dataConverter }, JSON.parse(history), id);

test.each(ids)('%s replays', (id) => replay(id));

/** The JSON of all payloads in a history. */
function payloadsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { data, metadata } = value as { data?: unknown; metadata?: unknown };
  if (typeof data === 'string' && metadata) return [Buffer.from(data, 'base64').toString()];
  return Object.values(value).flatMap(payloadsIn);
}

test.each(ids)('%s holds references to conversations and modules, and none of their texts', (id) => {
  const payloads = payloadsIn(JSON.parse(read(id))).join('\n');
  expect(payloads).toContain('"sha256":');
  expect(payloads).not.toMatch(/"(messages|content|toolCalls|citations|says|source)":/);
});

test('a history of other steps than the workflow takes does not replay', async () => {
  const other = read('recorded').replaceAll('"discover"', '"discoverElsewhere"');
  expect(other).not.toBe(read('recorded'));
  await expect(replay('recorded', other)).rejects.toThrow(DeterminismViolationError);
});
