/** All commands with their help. Only what help needs is loaded here: a command's action imports its own modules. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type QueueName, stages, taskQueues } from '../domain/work';
import { columnsOf, print, wrapText } from '../terminal';
import type { CommonOptions } from './options';
import { GATEWAY_PORT, UI_PORT } from './ports';

/** A command line, and what it does. */
type Example = readonly [command: string, effect?: string];

/** For the end of a command's help. */
export const examplesText = (lines: readonly Example[]): string =>
  ['', 'Examples:', ...lines.map(([command, effect]) => `${effect ? `  # ${effect}\n` : ''}  ${command}`)].join('\n');

/** Is given the arguments, then all options. @returns the exit code, or what is printed. */
type Action = (...given: never[]) => number | string | void | Promise<number | string | void>;
type Actions<Module> = { [Name in keyof Module]: Module[Name] extends Action ? Name : never }[keyof Module];

/** A whole number in a range. */
const wholeNumber =
  (low: number, high = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= low && number <= high) return number;
    const range = `from ${low}${high < Number.MAX_SAFE_INTEGER ? ` to ${high}` : ''}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };

const dollars = (text: string): number => {
  const number = Number(text);
  if (text.trim() !== '' && number >= 0 && Number.isFinite(number)) return number;
  throw new InvalidArgumentError('It must be an amount of dollars, such as 2.5.');
};

/** Dollars per million tokens read and written. */
const price = (text: string): { input: number; output: number } => {
  const [input = '', output = '', ...more] = text.split(',');
  if (more.length > 0) throw new InvalidArgumentError('It must be two amounts, such as 2.5,15.');
  return { input: dollars(input), output: dollars(output) };
};

/** One or more task queues. */
const queueList = (text: string): QueueName[] => {
  const names = Object.keys(taskQueues);
  const queues = text.split(',').map((name) => name.trim());
  if (queues.every((name) => names.includes(name))) return queues as QueueName[];
  throw new InvalidArgumentError(`It must be one or more of ${names.join(', ')}, between commas.`);
};
/** May be given several times. */
const repeated = (one: string, before: string[] = []): string[] => [...before, one];

const isPort = wholeNumber(0, 65535);
const uiPort = [
  '--ui-port <port>',
  `port of Temporal's UI; 0: any free one (default: ${UI_PORT}, if it is free)`,
] as const;

/** Adds all commands to a program that has the options of `CommonOptions`. */
export function addCommands(program: Command): void {
  /** Adds a command whose action is the function `name` of a module that is loaded when the command runs. */
  const add = <Module>(
    usage: string,
    load: () => Promise<Module>,
    name: Actions<Module>,
    examples: readonly Example[] = [],
    hidden = false,
  ): Command => {
    const command = program.command(usage, { hidden });
    if (examples.length > 0) command.addHelpText('after', examplesText(examples));
    return command.action(async (...given: unknown[]) => {
      // Commander gives the arguments, then the command's own options and the command.
      const all = command.optsWithGlobals<CommonOptions>();
      const action = (await load())[name] as Action;
      const result = await action(...([...given.slice(0, -2), all] as never[]));
      if (typeof result === 'number') process.exitCode = result;
      if (typeof result === 'string') print(all.json ? result : wrapText(result, columnsOf()));
    });
  };

  program.commandsGroup('Before:');
  add('init [dir]', () => import('./init.js'), 'init', [
    ['campaign init desk', 'an example agent with its tasks, in the folder desk'],
    ['campaign init --agent "python3 agent.py" --tasks tickets.csv', 'for a program of your own'],
  ])
    .description('write a campaign file for your agent program; it asks for what no option gives')
    .option('--agent <command>', 'starts the agent for one task; without it an example is written')
    .option('--tasks <file>', "the agent's tasks: JSON lines, or CSV with a line of names")
    .option('--base-model <model>', 'a folder, or a name on the Hugging Face hub')
    .option('--url <url>', 'API of the language model that finds capabilities and writes environments')
    .option('--model <name>', "that model's name");
  add('setup', () => import('./setup.js'), 'setup')
    .description('install what campaigns run on: a Python environment with the trainer, and the Temporal CLI')
    .option('--python <file>', 'Python 3.11 to 3.13 to make the environment with');
  add('check [target...]', () => import('./check/command.js'), 'check', [
    ['campaign check', 'this machine'],
    ['campaign check campaigns/mine.yaml', 'everything that a campaign needs, and what it costs'],
    ['campaign check -- python bridge.py', 'a program that speaks docs/environments.md'],
    ['campaign check module.js', 'a module of a synthesized environment'],
  ])
    .description(
      'check this machine; or a campaign file: what is missing, first turns of the base model, the target, cost, ' +
        'smallest detectable difference; or a program after --, or a module (FILE.js)',
    )
    .option('--target', 'only check the target of the campaign file: no base model is needed');
  add('schema [file]', () => import('./campaign-file.js'), 'printSchema').description(
    'print the JSON schema of campaign files, for editors; of a file, with the kinds of its plug-ins alone',
  );

  program.commandsGroup('Run:');
  add('run <file>', () => import('./run/command.js'), 'run', [
    ['campaign run campaigns/demo.yaml', 'the whole method; Ctrl-C stops it, the same command continues'],
    ['campaign run campaigns/demo.yaml --until rollouts', 'what the base model solves, and no more'],
    ['campaign run campaigns/demo.yaml --training-seed 2', 'another training of the same environments: demo-s2'],
    ['campaign run campaigns/mine.yaml --detach --temporal-address temporal:7233', 'on a cluster of your own'],
  ])
    .description('run a campaign with all its services on this machine; the same command continues after a stop')
    .addOption(new Option('--until <stage>', 'stop after this stage').choices(stages))
    .option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0))
    .option('--training-seed <seed>', 'seed of trainings; it is added to the name as -s<seed>', wholeNumber(0))
    .option('--name <name>', "name, instead of the file's")
    .option('--force', 'run even if the base-model check fails')
    .option('--retry', 'retry what failed in a completed campaign')
    .option('--restart', 'terminate it if it runs, and start it with the current code; finished work is found')
    .option('--detach', 'start it on a Temporal server that runs, for workers anywhere, and leave')
    .option(...uiPort, isPort);
  add('worker', () => import('./worker.js'), 'worker', [
    ['campaign worker --queues rollouts,gpu', 'on a host with GPUs; settings are variables'],
  ])
    .description('run steps of campaigns from task queues (docs/machines.md); `run` starts its own workers')
    .requiredOption('--queues <list>', 'control, rollouts, gpu: one or more', queueList)
    .option('--plugin <package or path>', 'plug-in to load; may be repeated', repeated);

  program.commandsGroup('Control:');
  add('cancel <name>', () => import('./control.js'), 'cancel').description(
    'end a campaign; finished work stays, and the same run continues from it',
  );
  add('approve <name> [what]', () => import('./approvals.js'), 'approve', [
    ['campaign approve demo', 'all that waits'],
    ['campaign approve demo tell_price', 'the environment of a capability'],
  ]).description('approve the selected capabilities together, or the environment of capability WHAT');
  add('reject <name> <what...>', () => import('./approvals.js'), 'reject', [
    ['campaign reject demo tell_price --reason "prices are no part of our service"'],
  ])
    .description('reject capability WHAT (or "all"), or send its environment back for revision')
    .requiredOption('--reason <text>', 'why; the synthesizer gets it');

  program.commandsGroup('Look:');
  add('list', () => import('./home.js'), 'listHome').description('list the campaigns with state and last change');
  add('status <name>', () => import('./campaign-status.js'), 'showStatus')
    .description('show the state of a campaign, and what waits for approval with the commands that decide')
    .option('--watch', 'follow it until it ends');
  add('report [name...]', () => import('./report.js'), 'showReport', [
    ['campaign report demo --out shared', 'the files, to pass on'],
    ['campaign report demo demo-s2 demo-s3 --out comparison', 'three seeds'],
  ])
    .description(
      'print the report of a campaign (default: the newest) and write its page; of several, or of files report.json, their comparison',
    )
    .option('--out <dir>', 'write the JSON and the page there');
  add('show <id>', () => import('./show.js'), 'show', [
    ['campaign show 3f2a9c41', 'a rollout that the report names'],
    ['campaign show arms.trace.success_rate --campaign demo', 'a figure of the report'],
  ])
    .description(
      'print a rollout with its conversation, or the rollouts behind a figure or an artifact; an id may be cut to its first 8 digits',
    )
    .option('--campaign <name>', 'whose rollout or figure it is (default: any, of a figure the newest)');
  add('view [name]', () => import('./view.js'), 'serveView')
    .description('serve the campaigns of a home, or one, as pages on this machine: report, all conversations, live')
    .option('--port <port>', 'port; 0: any free one', isPort, 8235);

  program.commandsGroup('Use:');
  add('serve <name>', () => import('./serve.js'), 'serve', [
    ['campaign serve demo', 'then ask http://127.0.0.1:8100/v1 for model `trace`'],
    ['campaign serve ./shared --model models/base', 'a folder that `campaign export` wrote'],
    ['campaign serve mine --policy-server http://gpu-host:8000', 'in front of a vLLM that runs'],
  ])
    .description("serve a finished campaign's routed policy, or an exported folder, as an OpenAI-compatible endpoint")
    .option('--host <address>', 'where to listen; other machines only with CAMPAIGN_GATEWAY_API_KEY', '127.0.0.1')
    .option('--port <port>', 'port; 0: any free one', isPort, GATEWAY_PORT)
    .option('--policy-server <url>', "policy server that runs (default: the campaign's, else one that is started)")
    .option('--model <folder>', 'base model of the server that is started (default: where the home knows it)')
    .option('--plugin <package or path>', "plug-in of the router's kind, for a folder; may be repeated", repeated);
  add('export <name> <dir>', () => import('./export.js'), 'exportTo', [
    ['campaign export demo shared --base-model OWNER/MODEL --license apache-2.0', 'an earlier export is replaced'],
    ['campaign export demo lines --rollouts', 'for `campaign analyse` and other tools'],
  ])
    .description(
      'write a finished campaign into a folder that can be published and served: adapters, merged adapters, prompts, router, environments, report, cards; or the rollouts alone',
    )
    .option('--rollouts', 'only the rollouts, also of a campaign that runs: JSON lines in the OpenAI form')
    .option('--base-model <name>', "public name of the base model, OWNER/MODEL (default: its folder's name)")
    .option('--license <id>', 'licence of what is published, such as apache-2.0', 'unknown');

  program.commandsGroup('Other:');
  add('ui', () => import('./run/command.js'), 'serveUi')
    .description("start Temporal and its UI for this home's campaigns, until Ctrl-C")
    .option(...uiPort, isPort);
  add('delete <name>', () => import('./home.js'), 'deleteCampaign').description(
    'delete a campaign: its history in Temporal, its folder, and results that no other campaign uses',
  );
  add('gc', () => import('./home.js'), 'collectGarbage')
    .description('remove results that no campaign uses and that are older than a day; campaigns may run meanwhile')
    .option('--dry-run', 'only count what would go');
  add('analyse <files...>', () => import('./analyse/run.js'), 'analyse', [
    ['campaign analyse conversations.jsonl', 'counts and comparisons, nothing leaves the machine'],
    ['campaign analyse conversations.jsonl --url http://127.0.0.1:8000/v1 --model my-model'],
  ])
    .alias('analyze')
    .description(
      'say why conversations of an agent fail: JSON lines, logs of Inspect. Without a language model failed and passed ones are compared',
    )
    .option('--url <url>', 'OpenAI-compatible endpoint of the language model that reads them, ending in /v1')
    .option('--model <name>', 'its model')
    .option('--api-key-env <name>', 'environment variable with the API key')
    .option('--config <file>', "YAML file with the analyst's fields, such as contextTokens, or a campaign file")
    .option('--passes <n>', 'labeling passes (default: 10), of which 80% must agree', wholeNumber(1, 1000))
    .option('--price <input,output>', 'dollars per million prompt and reply tokens, such as 2.5,15', price)
    .option('--max-dollars <dollars>', 'stop before more than this is spent; needs a price', dollars)
    .option('--scorer <name>', "whose score counts in Inspect's logs with several")
    .option('--name <name>', "folder of the result in the home (default: the first file's name)");
  add('serve-module <file>', () => import('./check/module.js'), 'serveModule', [], true).description(
    'serve a module of a synthesized environment on stdin and stdout, for exported folders',
  );
}
