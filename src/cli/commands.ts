/** All commands with their help. Only what help needs is loaded here: a command's action imports its own modules. */
import type { Command, Option } from 'commander';
import { publishedRun } from '../domain/presets';
import type { LabelsOptions } from './analyse/labels';
import type { AnalyseOptions } from './analyse/run';
import type { DecideOptions } from './approvals';
import type { CodecServerOptions } from './codec-server';
import type { CheckOptions } from './environment-check';
import type { ExportOptions } from './export';
import type { GatewayOptions } from './gateway';
import type { DeleteOptions } from './home';
import {
  allOptions,
  campaignOptions,
  type CommonOptions,
  dollars,
  type Example,
  examplesText,
  json,
  labelsName,
  moreDollars,
  option,
  portOptions,
  recover,
  seedList,
  silence,
  toolList,
  wholeNumber,
  yes,
} from './options';
import type { MetricsOptions } from './metrics';
import type { PlanOptions } from './plan/plan';
import { CODEC_PORT, GATEWAY_PORT, VIEW_PORT } from './ports';
import type { LineageOptions, ReportOptions } from './report';
import type { StartOptions } from './run/campaign';
import type { DoctorOptions } from './doctor';
import type { RunOptions, SeedsOptions } from './run/command';
import type { ServeOptions } from './run/supervisor';
import type { SelectOptions } from './select';
import type { ViewOptions } from './view';

interface CommandText {
  /** The command that it is a command of. */
  group?: 'labels' | 'env';
  /** Name and arguments. */
  usage: string;
  alias?: string;
  description: string;
  options?: readonly Option[];
  examples: readonly Example[];
  /** Is given all options and the arguments. @returns the exit code, or what is printed. */
  run: (options: never, ...args: never[]) => Promise<number | string | void>;
}

function add(parent: Command, { usage, alias, description, options = [], examples, run }: CommandText): Command {
  const command = parent.command(usage).description(description).addHelpText('after', examplesText(examples));
  if (alias !== undefined) command.alias(alias);
  for (const option of options) command.addOption(option);
  return command.action(async (...given: unknown[]) => {
    // Commander gives the arguments, then the command's own options and the command.
    const result = await run(allOptions(command) as never, ...(given.slice(0, -2) as never[]));
    if (typeof result === 'number') process.exitCode = result;
    if (typeof result === 'string') console.log(result);
  });
}

/** What is done to a campaign that a server knows. */
const control = (name: 'pause' | 'resume' | 'cancel' | 'restart', description: string, done: string): CommandText => ({
  usage: `${name} <name>`,
  description,
  examples: [[`campaign ${name} demo`]],
  async run(options: CommonOptions, campaign: string) {
    const { commandCampaign, withTemporal } = await import('./temporal.js');
    await withTemporal(options, (temporal) => commandCampaign(temporal, campaign, name));
    return `campaign ${campaign}: ${done}`;
  },
});

const commands: readonly CommandText[] = [
  {
    usage: 'run <file>',
    description: 'run a campaign with all its services on this machine; the same command goes on after a stop',
    options: [
      ...campaignOptions,
      ...portOptions,
      option('--training-seeds <seeds>', 'a run for each training seed (1,2,3), and their comparison', seedList),
      option('--retry [child]', 'redo what failed in a campaign that has completed, or this capability or arm alone'),
      option('--restart', 'end it with its children first, and start it again under the code of now'),
      recover,
      option('--exit', 'leave when it has ended, instead of keeping the UI up'),
      json('JSON lines instead of a live tree'),
    ],
    examples: [
      ['campaign run campaigns/demo.yaml', 'the whole method; Ctrl-C stops it, the same command goes on'],
      ['campaign run campaigns/demo.yaml --until rollouts', 'what the base model solves, and no more'],
      ['campaign run campaigns/demo.yaml --training-seeds 1,2,3', 'three runs and their comparison'],
      ['campaign run campaigns/demo.yaml --retry ask_for_missing_identifier', 'redo that capability alone'],
    ],
    async run(options: RunOptions & Partial<SeedsOptions>, file: string) {
      const { runCampaign, runSeeds } = await import('./run/command.js');
      const { trainingSeeds } = options;
      return trainingSeeds ? runSeeds(file, { ...options, trainingSeeds }) : runCampaign(file, options);
    },
  },
  {
    usage: 'serve',
    description: 'start Temporal and its UI for this home, to look at finished campaigns',
    options: [...portOptions, recover, json('JSON lines')],
    examples: [['campaign serve --ui-port 0', 'the UI on any free port, until Ctrl-C']],
    run: async (options: ServeOptions) => (await import('./run/command.js')).serveHome(options),
  },
  {
    usage: 'codec-server',
    description: "decrypt payloads for Temporal's UI with CAMPAIGN_ENCRYPTION_KEY, on this machine alone",
    options: [
      option('--port <port>', 'port; 0: any free one', wholeNumber(0, 65535)).default(CODEC_PORT),
      option('--ui <origin>', "origin of the UI's pages, which alone are answered").default('http://localhost:8233'),
      json(),
    ],
    examples: [['campaign codec-server --ui https://cloud.temporal.io', 'then name it as codec server in the UI']],
    run: async (options: CodecServerOptions) => (await import('./codec-server.js')).serveCodec(options),
  },
  {
    usage: 'plan <file>',
    description: 'estimate rollouts, tokens, GPU-hours and wall time, from measured rates where there are any',
    options: [
      option(
        '--capabilities <n>',
        `capabilities that are selected (default: what the analyst is given outright, else ${publishedRun.capabilities}, as published)`,
        wholeNumber(0, 100),
      ),
      option('--rates <file>', 'rates for what no report of this home has measured (docs/plan.md)'),
      json(),
    ],
    examples: [['campaign plan campaigns/mine.yaml --capabilities 6']],
    run: async (options: PlanOptions, file: string) => (await import('./plan/plan.js')).plan(file, options),
  },
  {
    usage: 'doctor [file]',
    description: 'check this machine, or everything that a campaign file needs',
    options: [
      option(
        '--probe',
        "try all that a campaign asks of a vLLM, against the trainer's own log-probs; minutes on a CPU",
      ),
      ...portOptions,
      json(),
    ],
    examples: [['campaign doctor campaigns/mine.yaml', 'missing parts, each with its fix']],
    run: async (options: DoctorOptions, file?: string) => (await import('./doctor.js')).doctor(file, options),
  },
  {
    usage: 'schema',
    description: 'print the JSON schema of campaign files, for editors',
    options: [option('--markdown', 'print a reference of all fields for people instead')],
    examples: [['campaign schema > campaign.schema.json']],
    async run({ markdown }: { markdown?: boolean }) {
      const { campaignJsonSchema } = await import('./campaign-schema.js');
      const { campaignReference } = await import('./campaign-reference.js');
      const schema = campaignJsonSchema();
      return markdown ? campaignReference(schema).trimEnd() : JSON.stringify(schema, null, 2);
    },
  },
  {
    usage: 'status [name]',
    description: 'show where a campaign stands; without a name, which campaigns there are',
    options: [json()],
    examples: [['campaign status'], ['campaign status demo --json', 'for programs']],
    run: async (options: CommonOptions, name?: string) =>
      (await import('./campaign-status.js')).showStatus(name, options),
  },
  {
    usage: 'watch [name]',
    description: 'follow a campaign until it ends',
    options: [json('JSON lines instead of a live tree')],
    examples: [['campaign watch demo'], ['campaign watch demo --json', 'one change a line']],
    run: async (options: CommonOptions, name?: string) =>
      (await import('./campaign-status.js')).watchCampaign(name, options),
  },
  {
    usage: 'list',
    description: 'list the campaigns of the home: state, last change, and room that each takes alone and shares',
    options: [json()],
    examples: [['campaign list'], ['campaign list --json', 'for programs']],
    run: async (options: CommonOptions) => (await import('./home.js')).listHome(options),
  },
  {
    usage: 'du [name]',
    description:
      'show what takes room in the home, by kind; with a name, what of it the campaign uses alone and shares',
    options: [json()],
    examples: [['campaign du'], ['campaign du demo', 'what `campaign delete demo` frees is alone']],
    run: async (options: CommonOptions, name?: string) => (await import('./home.js')).showUse(name, options),
  },
  {
    usage: 'delete <name>',
    description: 'delete a campaign: its folder, its history in Temporal, and what no other campaign uses',
    options: [yes],
    examples: [['campaign du demo', 'what it takes'], ['campaign delete demo --yes']],
    run: async (options: DeleteOptions, name: string) => (await import('./home.js')).deleteCampaign(name, options),
  },
  {
    usage: 'prune',
    description: 'remove what nothing refers to, what dead processes left, and folders of trainings that are stored',
    options: [option('--dry-run', 'only say what would go')],
    examples: [['campaign prune --dry-run', 'what would go'], ['campaign prune']],
    run: async (options: CommonOptions & { dryRun?: boolean }) => (await import('./home.js')).prune(options),
  },
  control('pause', 'let a campaign finish its running steps and begin no other', 'pausing after the running steps'),
  control('resume', 'go on with a paused campaign', 'goes on'),
  control(
    'cancel',
    'end a campaign; finished work stays, for it or another one to go on from',
    'ends as soon as a worker hears of it; finished work stays',
  ),
  control(
    'restart',
    'end a campaign with its children and start it again under the code that its workers have now; finished work is found',
    'starts again; `campaign watch` follows it',
  ),
  {
    usage: 'retry <name> [child]',
    description: 'redo what failed in a campaign that has ended; everything else is found in the store',
    examples: [
      ['campaign retry demo ask_for_missing_identifier', 'that capability or arm alone'],
      ['campaign run FILE --retry ask_for_missing_identifier', 'the same without a server that is up'],
    ],
    async run(options: CommonOptions, name: string, only?: string) {
      const { retryCampaign, withTemporal } = await import('./temporal.js');
      const again = await withTemporal(options, (temporal) => retryCampaign(temporal, { name, only }));
      if (again.length === 0) return `nothing failed in ${only ?? name}`;
      return `campaign ${name} does again: ${again.join(', ')}; \`campaign watch ${name}\` follows it, and \`campaign run FILE\` brings workers where none run`;
    },
  },
  {
    usage: 'approvals <name>',
    description: 'list pending approvals (also writes HOME/NAME/approval.html)',
    options: [json()],
    examples: [['campaign approvals demo']],
    run: async (options: CommonOptions, name: string) => (await import('./approvals.js')).listApprovals(name, options),
  },
  {
    usage: 'approve <name> [what]',
    description: 'approve the selected capabilities together, or the environment of capability WHAT',
    options: [
      option('--edit <file>', 'approve it as it stands in this file: a list of {name, definition}, or a module'),
      yes,
    ],
    examples: [
      ['campaign approve demo', 'all that waits'],
      ['campaign approve demo tell_price --edit tell_price.js', 'an environment, as you edited it'],
    ],
    run: async (options: DecideOptions, name: string, what?: string) =>
      (await import('./approvals.js')).approve(name, what === undefined ? [] : [what], options),
  },
  {
    usage: 'reject <name> <what...>',
    description: 'reject capability WHAT (or "all"), or send its environment back for revision',
    options: [
      option('--reason <text>', 'why: it is kept, and tells the synthesizer what to change').makeOptionMandatory(),
      yes,
    ],
    examples: [['campaign reject demo tell_price --reason "prices are no part of our service"']],
    run: async (options: DecideOptions, name: string, what: string[]) =>
      (await import('./approvals.js')).reject(name, what, options),
  },
  {
    usage: 'report [name]',
    description: 'show the report of a campaign (default: the newest): table, page, JSON',
    options: [json('print report.json'), option('--out <dir>', 'write report.json and report.html there')],
    examples: [['campaign report demo --out shared', 'the files, to pass on']],
    run: async (options: ReportOptions, name?: string) => (await import('./report.js')).showReport(name, options),
  },
  {
    usage: 'metrics <name>',
    description: 'write the curves of a campaign, one that runs or has ended, for TensorBoard, trackio or wandb',
    options: [
      option('--to <tools>', 'tensorboard, trackio, wandb, or several with commas', toolList).default(
        ['tensorboard'],
        'tensorboard',
      ),
      option('--out <dir>', "folder for them (default: metrics in the campaign's folder)"),
      option('--follow', 'go on until the campaign has ended, or Ctrl-C'),
      json(),
    ],
    examples: [
      ['campaign metrics demo', 'then tensorboard --logdir .campaigns/demo/metrics/tensorboard'],
      ['campaign metrics demo --to wandb --follow', 'while it runs, wherever its workers are'],
    ],
    run: async (options: MetricsOptions, name: string) => (await import('./metrics.js')).writeMetrics(name, options),
  },
  {
    usage: 'compare <report...>',
    description: 'compare several runs of one campaign: names of campaigns, or files report.json',
    options: [
      json('print JSON instead of a table'),
      option('--out <dir>', 'write comparison.json and comparison.html there'),
    ],
    examples: [['campaign compare demo-1 demo-2 demo-3 --out comparison', 'three seeds']],
    run: async (options: CommonOptions & { out?: string }, named: string[]) =>
      (await import('./compare.js')).showComparison(named, options),
  },
  {
    usage: 'lineage <start>',
    description: "print the rollouts behind a figure's id, an artifact (key or beginning of its sha256) or a rollout",
    options: [
      option('--campaign <name>', 'whose report holds the figure (default: the newest)'),
      json('print the tree as JSON'),
    ],
    examples: [['campaign lineage arms.trace.success_rate --campaign demo', 'a figure of the report']],
    run: async (options: LineageOptions, start: string) => (await import('./report.js')).showLineage(start, options),
  },
  {
    usage: 'view [name]',
    description: 'serve a campaign (default: the newest) as a page on this machine: report, all conversations, live',
    options: [
      option('--port <port>', 'port; 0: any free one', wholeNumber(0, 65535)).default(VIEW_PORT),
      json('print where it listens as JSON'),
    ],
    examples: [['campaign view demo', 'until Ctrl-C']],
    run: async (options: ViewOptions, name?: string) => (await import('./view.js')).serveView(name, options),
  },
  {
    usage: 'show <rollout>',
    description: 'print a rollout: its conversation, what it came to and why; by its id, or the beginning of it',
    options: [option('--campaign <name>', 'whose rollout it is (default: any)'), json()],
    examples: [['campaign show 3f2a9c41', 'an id that the report or `campaign lineage` names']],
    run: async (options: CommonOptions & { campaign?: string }, id: string) =>
      (await import('./view.js')).showRollout(id, options),
  },
  {
    usage: 'gateway <name>',
    description:
      "serve a finished campaign's routed policy, or an exported folder, as an OpenAI-compatible endpoint; a newer report is taken up",
    options: [
      option(
        '--host <address>',
        'address to listen on; beyond this machine only with CAMPAIGN_GATEWAY_API_KEY',
      ).default('127.0.0.1'),
      option('--port <port>', 'port; 0: any free one', wholeNumber(0, 65535)).default(GATEWAY_PORT),
      option('--policy-server <url>', "policy server that runs (default: the campaign's, else one that is started)"),
      option('--model <folder>', 'base model of the server that is started (default: where the home knows it)'),
      option('--concurrency <n>', 'completions at once', wholeNumber(1, 10_000)).default(256),
      option('--max-body <mib>', 'largest request in MiB', wholeNumber(1, 1024)).default(8),
      option('--timeout <seconds>', 'longest time to an answer', wholeNumber(1, 24 * 3600)).default(300),
      option('--grace <seconds>', 'how long it answers on when it is ended', wholeNumber(0, 3600)).default(30),
      json('print where it listens as JSON'),
    ],
    examples: [
      ['campaign gateway demo', 'then ask http://127.0.0.1:8100/v1 for model `trace`'],
      ['campaign gateway ./shared --model models/base', 'a folder that `campaign export` wrote'],
      ['campaign gateway mine --policy-server http://gpu-host:8000', 'in front of a vLLM that runs'],
      ['CAMPAIGN_GATEWAY_API_KEY=... campaign gateway demo --host 0.0.0.0', 'for other machines'],
    ],
    run: async (options: GatewayOptions, name: string) => (await import('./gateway.js')).serveGateway(name, options),
  },
  {
    usage: 'export <name> <dir>',
    description:
      'write a finished campaign into a folder that can be published and served: adapters, sums, prompts, router, environments, report, cards; or conversations alone',
    options: [
      option(
        '--conversations <format>',
        'only the rollouts, of a campaign that may run still: inspect (a log of Inspect for each batch), atif (a file for each)',
      ).choices(['inspect', 'atif']),
      option(
        '--filter <name=value...>',
        'which rollouts: stage, arm, task, outcome and the other filters of `campaign view`',
      ),
      option('--base-model <name>', "public name of the base model, such as OWNER/MODEL (default: its folder's name)"),
      option('--license <id>', 'licence of what is published, such as apache-2.0').default('unknown'),
    ],
    examples: [
      ['campaign export demo shared --base-model OWNER/MODEL --license apache-2.0', 'an earlier export is replaced'],
      ['campaign gateway ./shared', 'serve the folder'],
      [
        'campaign export demo logs --conversations inspect --filter stage=test arm=trace',
        'then `inspect view --log-dir logs`',
      ],
    ],
    run: async (options: ExportOptions, name: string, folder: string) =>
      (await import('./export.js')).exportTo(name, folder, options),
  },
  {
    usage: 'analyse <files...>',
    alias: 'analyze',
    description:
      'find the capabilities that an agent lacks in its conversations: JSON lines, logs of Inspect, trajectories of Harbor (ATIF)',
    options: [
      option('--url <url>', 'OpenAI-compatible endpoint of the language model that reads them, ending in /v1'),
      option('--model <name>', 'its model'),
      option('--api-key-env <name>', 'environment variable with the API key'),
      option('--config <file>', "YAML file with the analyst's fields, or a campaign file"),
      option('--passes <n>', 'labeling passes (default: 10)', wholeNumber(1, 1000)),
      option('--votes <n>', 'passes that must agree to select a capability (default: 8 of 10)', wholeNumber(1, 1000)),
      option('--price-input <dollars>', 'price in dollars per million prompt tokens', dollars),
      option('--price-output <dollars>', 'price in dollars per million reply tokens', dollars),
      option('--max-dollars <dollars>', 'stop before more than this is spent', moreDollars),
      option('--prompts <folder>', 'prompts of your own, each in place of the one of its name in prompts/'),
      option('--scorer <name>', "whose score counts in Inspect's logs and Harbor's results with several"),
      option('--name <name>', "folder of the result in the home (default: the first file's name)"),
      option('--yes', 'go on without asking'),
      json('print analysis.json instead of a table'),
    ],
    examples: [
      ['campaign analyse conversations.jsonl --url http://127.0.0.1:8000/v1 --model my-model --max-dollars 5'],
    ],
    run: async (options: AnalyseOptions, files: string[]) => (await import('./analyse/run.js')).analyse(files, options),
  },
  {
    usage: 'select',
    description: 'select lacking capabilities from label files run_NN.json',
    options: [
      option('--labels <dir>', 'folder with run_00.json, run_01.json, ...').makeOptionMandatory(),
      option('--rho <fraction>', 'least coverage of the failures (default: 0.1)'),
      option('--delta <fraction>', 'least gap between the error rates of failures and successes (default: 0.2)'),
      option('--votes <count>', 'passes that must agree (default: 8)'),
      json('print JSON instead of a table'),
    ],
    examples: [['campaign select --labels labels --rho 0.05', 'a rule of your own']],
    run: async (options: SelectOptions) => (await import('./select.js')).select(options),
  },
  {
    usage: 'start <file>',
    description: 'start a campaign on a running cluster and leave; workers take it up wherever they are',
    options: [...campaignOptions, json()],
    examples: [['campaign --temporal-address temporal:7233 start campaigns/mine.yaml', 'on a cluster of your own']],
    run: async (options: CommonOptions & StartOptions, file: string) =>
      (await import('./start.js')).startFile(file, options),
  },
  {
    group: 'labels',
    usage: 'import <file>',
    description:
      'check labels by people, or marks of where failures begin (JSON lines or CSV), and keep them for compare and the page',
    options: [labelsName],
    examples: [['campaign labels import labels.csv --name support']],
    run: async (options: LabelsOptions, file: string) =>
      (await import('./analyse/labels.js')).importLabels(file, options),
  },
  {
    group: 'labels',
    usage: 'compare [file]',
    description:
      'agreement and confusion by capability, and where failures begin (default: the labels that were imported)',
    options: [labelsName, json()],
    examples: [['campaign labels compare --name support']],
    run: async (options: LabelsOptions, file?: string) =>
      (await import('./analyse/labels.js')).compareLabels(file, options),
  },
  {
    group: 'env',
    usage: 'check [target...]',
    description:
      'conformance test of a built-in environment (NAME), of a benchmark, of a program that speaks the protocol, or of the target of a campaign file, ' +
      "such as an agent's program; " +
      'self-test of a module of a synthesized environment (FILE.js, FILE.ts)',
    options: [json('print findings as JSON'), silence.default(20)],
    examples: [
      ['campaign env check -- python bridge.py', 'a program that speaks docs/environments.md'],
      ['campaign env check campaigns/mine.yaml', 'the target of a campaign'],
      ['campaign env check module.js', 'a module of a synthesized environment'],
    ],
    run: async (options: CheckOptions, target: string[]) =>
      (await import('./environment-check.js')).envCheck(target, options, process.argv.includes('--')),
  },
  {
    group: 'env',
    usage: 'serve <name>',
    description:
      'serve a built-in environment (NAME) or a module of a synthesized one (FILE.js, FILE.ts) on stdin and stdout (docs/environments.md)',
    examples: [['campaign env serve shop'], ['campaign env serve shared/environments/tell_price.js']],
    run: async (options: CommonOptions, name: string) =>
      (await import('./environment-check.js')).serveNamed(name, options),
  },
];

/** Adds all commands to a program that has the options of `CommonOptions`. */
export function addCommands(program: Command): void {
  for (const one of commands) if (!one.group) add(program, one);
  const parents = {
    labels: program.command('labels').description("compare people's labels with those of the labeling passes"),
    env: program.command('env').description('check that an environment keeps its contract, or serve one'),
  };
  for (const one of commands) if (one.group) add(parents[one.group], one);
  const [check] = parents.env.commands;
  check?.configureHelp({ commandUsage: () => `campaign env check [options] ${argumentsUsage()}` });
}

/** Help is written synchronously, so that what it says of the kinds can't be imported dynamically. */
function argumentsUsage(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- as above
  const usage = require('./environment-check') as typeof import('./environment-check');
  return usage.argumentsUsage();
}
