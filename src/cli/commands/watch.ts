/** `campaign watch`, `status`, `pause` and `resume`. */
import type { Command } from 'commander';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { allOptions, temporalOf, type CommonOptions } from '../options';
import type { Temporal } from '../temporal';

export function watchCommands(program: Command): void {
  program
    .command('watch [name]')
    .description('follow a campaign until it ends')
    .option('--json', 'JSON lines instead of a live tree')
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      await withTemporal(options, async (temporal) => {
        const { createProgressOutput, follow } = lazy.watch();
        const campaign = name ?? (await onlyCampaign(temporal));
        const output = createProgressOutput({ json: options.json, campaign });
        const last = await follow({ temporal, name: campaign, output, signal: new AbortController().signal });
        if (last?.status !== 'COMPLETED') process.exitCode = 1;
      });
    });

  program
    .command('status [name]')
    .description('where a campaign stands; without a name, which campaigns there are')
    .option('--json', 'print JSON')
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      await withTemporal(options, async (temporal) => {
        const lines = name ? await statusOf(temporal, name, options) : await listOf(temporal, options);
        console.log(lines.join('\n'));
      });
    });

  for (const [signal, what] of [
    ['pause', 'let a campaign finish its running steps and begin no other'],
    ['resume', 'go on with a paused campaign'],
  ] as const)
    program
      .command(`${signal} <name>`)
      .description(what)
      .action(async (name: string, _options: unknown, command: Command) => {
        await withTemporal(allOptions(command), (temporal) => lazy.temporal().signalCampaign(temporal, name, signal));
        console.log(`campaign ${name}: ${signal === 'pause' ? 'pausing after the steps that run now' : 'goes on'}`);
      });
}

async function withTemporal<T>(options: CommonOptions, work: (temporal: Temporal) => Promise<T>): Promise<T> {
  const temporal = await lazy.temporal().connect(temporalOf(options));
  try {
    return await work(temporal);
  } finally {
    await temporal.close();
  }
}

async function statusOf(temporal: Temporal, name: string, { json }: CommonOptions): Promise<string[]> {
  const { takeSnapshot, frameLines, Rates } = lazy.watch();
  const snapshot = await takeSnapshot(temporal, name);
  if (json) return [JSON.stringify(snapshot)];
  const columns = process.stdout.columns || 100;
  return frameLines({ snapshot, rates: new Rates(), now: Date.now(), columns, colour: process.stdout.isTTY === true });
}

async function listOf(temporal: Temporal, { json }: CommonOptions): Promise<string[]> {
  const campaigns = await lazy.temporal().listCampaigns(temporal);
  if (json) return [JSON.stringify(campaigns)];
  if (campaigns.length === 0) return ['no campaigns here yet; start one with `campaign run FILE`'];
  const width = Math.max(...campaigns.map(({ name }) => name.length));
  return campaigns.map(
    ({ name, status, startTime }) => `${name.padEnd(width)}  ${status.padEnd(10)}  ${startTime.toISOString()}`,
  );
}

/** The campaign that runs, if there is one only. */
async function onlyCampaign(temporal: Temporal): Promise<string> {
  const campaigns = await lazy.temporal().listCampaigns(temporal);
  const running = campaigns.filter(({ status }) => status === 'running');
  const [only, another] = running.length > 0 ? running : campaigns;
  if (!only) throw new UserError('no campaigns here yet; start one with `campaign run FILE`');
  if (another)
    throw new UserError(`several campaigns: ${campaigns.map(({ name }) => name).join(', ')}; name one of them`);
  return only.name;
}
