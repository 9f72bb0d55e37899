/** `campaign watch`, `status`, `pause`, `resume` and `cancel`. Invariant: how a campaign ended is what these tell, not their exit code. */
import type { Command } from 'commander';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { allOptions, homeOf, serverOf, temporalOf, type CommonOptions } from '../options';
import { plain } from '../plain';
import { liveHolder } from '../run/lock';
import type { Temporal } from '../temporal';
import type { ProgressOutput } from '../watch/progress-output';
import {
  campaignsOf,
  footerLines,
  lastKnown,
  reportFile,
  standingJson,
  standingLines,
  standingOf,
  withServer,
  type Standing,
} from './standing';

export function watchCommands(program: Command): void {
  retryCommand(program);
  program
    .command('watch [name]')
    .description('follow a campaign until it ends')
    .option('--json', 'JSON lines instead of a live tree')
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      // It would go on for nobody, and holds nothing.
      process.stdout.once('error', leave);
      try {
        await watch(options, name ?? (await withServer(options, (temporal) => onlyCampaign(temporal, options))));
      } finally {
        process.stdout.off('error', leave);
      }
    });

  program
    .command('status [name]')
    .description('where a campaign stands; without a name, which campaigns there are')
    .option('--json', 'print JSON')
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      await withServer(options, async (temporal) => {
        if (!name) return console.log((await listOf(temporal, options)).join('\n'));
        const standing = await standingOf(temporal, options, name);
        console.log(options.json ? standingJson(standing) : standingLines(standing).join('\n'));
      });
    });

  for (const [what, description, done] of [
    ['pause', 'let a campaign finish its running steps and begin no other', 'pausing after the steps that run now'],
    ['resume', 'go on with a paused campaign', 'goes on'],
    [
      'cancel',
      'end a campaign; what is done stays, for it or another one to go on from',
      'ends as soon as a worker hears of it; what is done stays',
    ],
  ] as const)
    program
      .command(`${what} <name>`)
      .description(description)
      .action(async (name: string, _options: unknown, command: Command) => {
        const { connect, commandCampaign } = lazy.temporal();
        const temporal = await connect(temporalOf(allOptions(command)));
        try {
          await commandCampaign(temporal, name, what);
        } finally {
          await temporal.close();
        }
        console.log(`campaign ${name}: ${done}`);
      });
}

function retryCommand(program: Command): void {
  program
    .command('retry <name> [child]')
    .description('do again what failed in a campaign that has ended; everything else is found')
    .addHelpText(
      'after',
      '\nExample: campaign retry demo ask_for_missing_identifier (that capability or arm alone)\nWithout a server that is up: campaign run FILE --retry ask_for_missing_identifier',
    )
    .action(async (name: string, only: string | undefined, _options: unknown, command: Command) => {
      const temporal = await lazy.temporal().connect(temporalOf(allOptions(command)));
      try {
        const again = await lazy.retry().retry(temporal, { name, only });
        const done = `campaign ${name} does again: ${again.join(', ')}; \`campaign watch ${name}\` follows it, and \`campaign run FILE\` brings workers where none run`;
        console.log(again.length > 0 ? done : `nothing failed in ${only ?? name}`);
      } finally {
        await temporal.close();
      }
    });
}

const leave = (): never => process.exit();

/** Follows a campaign that runs; of one that has ended, or that no server knows, the last frame. */
async function watch(options: CommonOptions, name: string): Promise<void> {
  const output = lazy.watch().createProgressOutput({ json: options.json, campaign: name });
  let standing: Standing | undefined;
  // The home's next server may be at another address.
  while (!standing) standing = await watchOnServer(options, name, output);
  for (const line of footerLines(standing)) output.note('campaign', line);
}

/** @returns undefined if another server has taken the place of the one that was asked. */
function watchOnServer(options: CommonOptions, name: string, output: ProgressOutput): Promise<Standing | undefined> {
  const home = homeOf(options);
  const address = serverOf(home);
  // One that its supervisor starts again is waited for.
  const isGone = () => serverOf(home) !== address && (serverOf(home) !== undefined || !liveHolder(home));
  return withServer(options, async (temporal) => {
    const { follow, readStatus } = lazy.watch();
    const standing = await standingOf(temporal, options, name);
    if (!temporal || standing.snapshot.asOf !== undefined || standing.snapshot.status !== 'RUNNING') {
      output.show(standing.snapshot);
      return standing;
    }
    const known = readStatus({ home: home.root, name });
    const at = { temporal, name, output, signal: new AbortController().signal, known };
    const last = (await follow({ ...at, ...(options.temporalAddress ? {} : { isGone }) })) ?? standing.snapshot;
    const report = reportFile(options, name);
    if (last.status !== 'RUNNING') return { snapshot: last, server: true, ...report };
    if (serverOf(home)) return undefined;
    const snapshot = lastKnown({ home: home.root, name }) ?? { ...last, asOf: Date.now() };
    output.show(snapshot);
    return { snapshot, server: false, ...report };
  });
}

async function listOf(temporal: Temporal | undefined, options: CommonOptions): Promise<string[]> {
  const campaigns = await campaignsOf(temporal, options);
  if (options.json) return [JSON.stringify({ server: temporal !== undefined, campaigns })];
  const { timeText } = lazy.watch();
  const none = `no campaigns in ${homeOf(options).root} yet; start one with \`campaign run FILE\``;
  const names = Math.max(0, ...campaigns.map(({ name }) => name.length));
  const states = Math.max(0, ...campaigns.map(({ status }) => status.length));
  const rows = campaigns.map(({ name, status, startedAt, attention, asOf }) => {
    const fresh = asOf === undefined ? '' : `  as of ${timeText(asOf)}`;
    const needs = attention === undefined ? '' : `  needs attention: ${attention}`;
    return plain(`${name.padEnd(names)}  ${status.padEnd(states)}  started ${timeText(startedAt)}${fresh}${needs}`);
  });
  const away = temporal ? [] : ['no Temporal server of this home is running: `campaign run FILE` goes on with one'];
  return rows.length > 0 ? [...rows, ...away] : [none];
}

/** The campaign that runs, if there is one only; else the only one there is. */
async function onlyCampaign(temporal: Temporal | undefined, options: CommonOptions): Promise<string> {
  const campaigns = await campaignsOf(temporal, options);
  const running = campaigns.filter(({ status }) => /running|paused/.test(status));
  const [only, another] = running.length > 0 ? running : campaigns;
  if (!only) throw new UserError(`no campaigns in ${homeOf(options).root} yet; start one with \`campaign run FILE\``);
  if (another)
    throw new UserError(`several campaigns: ${campaigns.map(({ name }) => name).join(', ')}; name one of them`);
  return only.name;
}
