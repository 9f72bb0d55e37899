/** `campaign retry` on the server that campaigns run on: what failed is done again, and nothing else. */
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { campaignCommand } from '../support/campaign-command';
import { devServer, quiet, start, withWorkers } from './environment';
import { config, fakeActivities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
const home = mkdtempSync(join(tmpdir(), 'retry-'));
beforeAll(async () => {
  env = await devServer();
});
afterAll(async () => {
  await env?.teardown();
  rmSync(home, { recursive: true, force: true });
});

test('a capability that failed in a campaign that completed is done again alone; then nothing is left to do', async () => {
  const { activities, seen } = fakeActivities();
  const { train } = activities;
  let broken = true;
  const trained: string[] = [];
  activities.train = async (input) => {
    trained.push(input.name);
    if (broken && input.name !== 'refuse_what_is_forbidden') throw ApplicationFailure.nonRetryable('gone', 'BadInput');
    return train(input);
  };
  const campaign = config({ name: 'again' });
  const address = String((env.connection.options as { address?: string }).address);
  const retry = (...args: string[]) => campaignCommand(home, '--temporal-address', address, 'retry', 'again', ...args);
  await withWorkers(env, activities, async () => {
    await (await start(env, { campaign })).result();
    broken = false;
    trained.splice(0);
    expect((await retry('refuse_what_is_forbidden')).text).toBe('nothing failed in refuse_what_is_forbidden');
    await expect(retry('nobody')).rejects.toThrow(/has no capability or arm nobody; it has refuse/);
    expect((await retry('tell_what_is_asked')).text).toMatch(/^campaign again does again: tell_what_is_asked;/);
    await env.client.workflow.getHandle('again').result();
    expect(trained).toEqual(['tell_what_is_asked']);
    expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['trained', 'trained']);
    expect(seen.record?.arms?.map(({ status }) => status)).toEqual(['failed']);
    expect((await retry()).text).toMatch(/does again: grpo_target;/);
    await env.client.workflow.getHandle('again').result();
    expect(seen.record?.arms?.map(({ status }) => status)).toEqual(['done']);
    expect((await retry()).text).toBe('nothing failed in again');
  });
});
