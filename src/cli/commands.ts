/** All commands with their help. Only what help needs is loaded here: a command's action imports its own modules. */
import type { Command } from 'commander';
import { print } from '../terminal';
import { resultCommands } from './commands-results';
import {
  allOptions,
  by,
  type CommandText,
  examplesText,
  option,
  plugin,
  portOptions,
  queueList,
  seedList,
  stageOption,
  uiPortOption,
  wholeNumber,
} from './options';

function add(program: Command, { usage, alias, group, hidden = false, description, ...more }: CommandText): void {
  const { options = [], examples = [], run } = more;
  const command = program.command(usage, { hidden }).description(description).helpGroup(group);
  if (examples.length > 0) command.addHelpText('after', examplesText(examples));
  if (alias !== undefined) command.alias(alias);
  for (const option of options) command.addOption(option);
  command.action(async (...given: unknown[]) => {
    // Commander gives the arguments, then the command's own options and the command.
    const result = await run(...([...given.slice(0, -2), allOptions(command)] as never[]));
    if (typeof result === 'number') process.exitCode = result;
    if (typeof result === 'string') print(result);
  });
}

/** The commands that run and control campaigns and show their state. */
const campaignCommands: readonly CommandText[] = [
  {
    group: 'Before:',
    usage: 'check [target...]',
    description:
      'check this machine; or a campaign file: what is missing, first turns of the base model, the target, cost, ' +
      'smallest detectable difference; or a program after --, or a module (FILE.js, FILE.ts)',
    options: [option('--target', 'only check the target of the campaign file: no base model is needed')],
    examples: [
      ['campaign check', 'this machine'],
      ['campaign check campaigns/mine.yaml', 'everything that a campaign needs, and what it costs'],
      ['campaign check -- python bridge.py', 'a program that speaks docs/environments.md'],
      ['campaign check module.js', 'a module of a synthesized environment'],
    ],
    run: by(() => import('./check/command.js'), 'check'),
  },
  {
    group: 'Before:',
    usage: 'schema [file]',
    description:
      'print the JSON schema of campaign files, for editors; of a file, with the kinds of its plug-ins alone',
    examples: [['campaign schema campaigns/mine.yaml > mine.schema.json']],
    run: by(() => import('./campaign-file.js'), 'printSchema'),
  },
  {
    group: 'Run:',
    usage: 'run <file>',
    description: 'run a campaign with all its services on this machine; the same command continues after a stop',
    options: [
      stageOption,
      option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0)),
      option(
        '--training-seed <seeds>',
        'seed of trainings alone, added to the name as -s<seed>; of several (1,2,3) each is a run, and they are compared',
        seedList,
      ),
      option('--name <name>', "name, instead of the file's"),
      option('--force', 'run even if the base-model check fails'),
      option('--retry [child]', 'retry what failed in a campaign that has completed, or this capability or arm alone'),
      option('--restart', 'terminate it if it runs, and start it again with the current code; finished work is found'),
      option('--detach', 'start it on a Temporal server that runs, for workers anywhere, and leave'),
      ...portOptions,
    ],
    examples: [
      ['campaign run campaigns/demo.yaml', 'the whole method; Ctrl-C stops it, the same command continues'],
      ['campaign run campaigns/demo.yaml --until rollouts', 'what the base model solves, and no more'],
      ['campaign run campaigns/demo.yaml --training-seed 1,2,3', 'three runs and their comparison'],
      ['campaign run campaigns/demo.yaml --retry ask_for_missing_identifier', 'retry that capability alone'],
      ['campaign run campaigns/mine.yaml --detach --temporal-address temporal:7233', 'on a cluster of your own'],
    ],
    run: by(() => import('./run/command.js'), 'run'),
  },
  {
    group: 'Run:',
    usage: 'worker',
    description: 'run steps of campaigns from task queues (docs/machines.md); `run` starts its own workers',
    options: [
      option('--queues <list>', 'control, rollouts, gpu: one or more', queueList).makeOptionMandatory(),
      plugin('plug-in to load'),
    ],
    examples: [['campaign worker --queues rollouts,gpu', 'on a host with GPUs; settings are variables']],
    run: by(() => import('./worker.js'), 'worker'),
  },
  {
    group: 'Look:',
    usage: 'list',
    description: 'list the campaigns with state and last change',
    examples: [['campaign list'], ['campaign list --json', 'for programs']],
    run: by(() => import('./home.js'), 'listHome'),
  },
  {
    group: 'Look:',
    usage: 'status [name]',
    description: 'show the state of a campaign, and what waits for approval with the commands that decide',
    options: [option('--watch', 'follow it until it ends')],
    examples: [['campaign status demo --watch'], ['campaign status demo --json', 'for programs']],
    run: by(() => import('./campaign-status.js'), 'showStatus'),
  },
  {
    group: 'Control:',
    usage: 'cancel <name>',
    description: 'end a campaign; finished work stays, and the same run continues from it',
    examples: [['campaign cancel demo']],
    run: by(() => import('./control.js'), 'cancel'),
  },
  {
    group: 'Control:',
    usage: 'approve <name> [what]',
    description: 'approve the selected capabilities together, or the environment of capability WHAT',
    options: [option('--edit <file>', 'approve the text of this file: a list of {name, definition}, or a module')],
    examples: [
      ['campaign approve demo', 'all that waits'],
      ['campaign approve demo tell_price --edit tell_price.js', 'an environment, as you edited it'],
    ],
    run: by(() => import('./approvals.js'), 'approve'),
  },
  {
    group: 'Control:',
    usage: 'reject <name> <what...>',
    description: 'reject capability WHAT (or "all"), or send its environment back for revision',
    options: [option('--reason <text>', 'why; the synthesizer gets it').makeOptionMandatory()],
    examples: [['campaign reject demo tell_price --reason "prices are no part of our service"']],
    run: by(() => import('./approvals.js'), 'reject'),
  },
  {
    group: 'Other:',
    usage: 'ui',
    description: "start Temporal and its UI for this home's campaigns, until Ctrl-C",
    options: [uiPortOption],
    examples: [['campaign ui --ui-port 0', 'the UI on any free port']],
    run: by(() => import('./run/command.js'), 'serveUi'),
  },
  {
    group: 'Other:',
    usage: 'delete <name>',
    description: 'delete a campaign: its history in Temporal, its folder, and results that no other campaign uses',
    examples: [['campaign delete demo --yes']],
    run: by(() => import('./home.js'), 'deleteCampaign'),
  },
  {
    group: 'Other:',
    usage: 'gc',
    description: 'remove results that no campaign uses and that are older than a day; campaigns may run meanwhile',
    options: [option('--dry-run', 'only count what would go')],
    examples: [['campaign gc --dry-run', 'what would go'], ['campaign gc']],
    run: by(() => import('./home.js'), 'collectGarbage'),
  },
];

/** Adds all commands to a program that has the options of `CommonOptions`. */
export function addCommands(program: Command): void {
  for (const one of [...campaignCommands, ...resultCommands]) add(program, one);
}
