/** All commands with their help. Only what help needs is loaded here: a command's action imports its own modules. */
import type { Command } from 'commander';
import { print } from '../terminal';
import { resultCommands } from './commands-results';
import {
  allOptions,
  by,
  campaignOptions,
  type CommandText,
  examplesText,
  json,
  option,
  plugin,
  portOptions,
  queueList,
  recover,
  seedList,
  yes,
} from './options';

function add(program: Command, { usage, alias, hidden = false, description, ...more }: CommandText): void {
  const { options = [], examples = [], run } = more;
  const command = program.command(usage, { hidden }).description(description);
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

/** Those that run campaigns and tell where they stand. */
const campaignCommands: readonly CommandText[] = [
  {
    usage: 'run <file>',
    description: 'run a campaign with all its services on this machine; the same command goes on after a stop',
    options: [
      ...campaignOptions,
      ...portOptions,
      option('--training-seeds <seeds>', 'a run for each training seed (1,2,3), and their comparison', seedList),
      option('--retry [child]', 'redo what failed in a campaign that has completed, or this capability or arm alone'),
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
    run: by(() => import('./run/command.js'), 'run'),
  },
  {
    usage: 'serve',
    description: 'start Temporal and its UI for this home, to look at finished campaigns',
    options: [...portOptions, recover, json('JSON lines')],
    examples: [['campaign serve --ui-port 0', 'the UI on any free port, until Ctrl-C']],
    run: by(() => import('./run/command.js'), 'serveHome'),
  },
  {
    usage: 'check [target...]',
    description:
      'check this machine; or a campaign file: what is missing, first turns of the base model, the target, cost, ' +
      'smallest detectable difference; or a program after --, or a module (FILE.js, FILE.ts)',
    options: [json()],
    examples: [
      ['campaign check', 'this machine'],
      ['campaign check campaigns/mine.yaml', 'everything that a campaign needs, and what it costs'],
      ['campaign check -- python bridge.py', 'a program that speaks docs/environments.md'],
      ['campaign check module.js', 'a module of a synthesized environment'],
    ],
    run: by(() => import('./check/command.js'), 'check'),
  },
  {
    usage: 'schema [file]',
    description:
      'print the JSON schema of campaign files, for editors; of a file, with the kinds of its plug-ins alone',
    examples: [['campaign schema campaigns/mine.yaml > mine.schema.json']],
    run: by(() => import('./campaign-file.js'), 'printSchema'),
  },
  {
    usage: 'status [name]',
    description: 'show where a campaign stands; without a name, which campaigns there are',
    options: [json()],
    examples: [['campaign status'], ['campaign status demo --json', 'for programs']],
    run: by(() => import('./campaign-status.js'), 'showStatus'),
  },
  {
    usage: 'watch [name]',
    description: 'follow a campaign until it ends',
    options: [json('JSON lines instead of a live tree')],
    examples: [['campaign watch demo'], ['campaign watch demo --json', 'one change a line']],
    run: by(() => import('./campaign-status.js'), 'watchCampaign'),
  },
  {
    usage: 'list',
    description: 'list the campaigns of the home with state and last change',
    options: [json()],
    examples: [['campaign list'], ['campaign list --json', 'for programs']],
    run: by(() => import('./home.js'), 'listHome'),
  },
  {
    usage: 'delete <name>',
    description: 'delete a campaign: its history in Temporal, its folder, and results that no other campaign uses',
    options: [yes],
    examples: [['campaign delete demo --yes']],
    run: by(() => import('./home.js'), 'deleteCampaign'),
  },
  {
    usage: 'gc',
    description: 'remove results that no campaign uses and that are older than a day; campaigns may run meanwhile',
    options: [option('--dry-run', 'only count what would go'), json()],
    examples: [['campaign gc --dry-run', 'what would go'], ['campaign gc']],
    run: by(() => import('./home.js'), 'collectGarbage'),
  },
  {
    usage: 'cancel <name>',
    description: 'end a campaign; finished work stays, for it or another one to go on from',
    examples: [['campaign cancel demo']],
    run: by(() => import('./control.js'), 'cancel'),
  },
  {
    usage: 'retry <name> [child]',
    description: 'redo what failed in a campaign that has ended; everything else is found in the store',
    examples: [
      ['campaign retry demo ask_for_missing_identifier', 'that capability or arm alone'],
      ['campaign run FILE --retry ask_for_missing_identifier', 'the same without a server that is up'],
    ],
    run: by(() => import('./control.js'), 'retry'),
  },
  {
    usage: 'approvals <name>',
    description: 'list pending approvals',
    options: [json()],
    examples: [['campaign approvals demo']],
    run: by(() => import('./approvals.js'), 'listApprovals'),
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
    run: by(() => import('./approvals.js'), 'approve'),
  },
  {
    usage: 'reject <name> <what...>',
    description: 'reject capability WHAT (or "all"), or send its environment back for revision',
    options: [
      option('--reason <text>', 'why: it is kept, and tells the synthesizer what to change').makeOptionMandatory(),
      yes,
    ],
    examples: [['campaign reject demo tell_price --reason "prices are no part of our service"']],
    run: by(() => import('./approvals.js'), 'reject'),
  },
  {
    usage: 'start <file>',
    description: 'start a campaign on a running cluster and leave; workers take it up wherever they are',
    options: [...campaignOptions, json()],
    examples: [['campaign --temporal-address temporal:7233 start campaigns/mine.yaml', 'on a cluster of your own']],
    run: by(() => import('./run/campaign.js'), 'start'),
  },
  {
    usage: 'worker',
    description: 'take steps of campaigns from task queues (docs/machines.md); `run` starts its own workers',
    options: [
      option('--queues <list>', 'control, rollouts, gpu: one or more', queueList).makeOptionMandatory(),
      plugin('plug-in to load'),
    ],
    examples: [['campaign worker --queues rollouts,gpu', 'on a host with GPUs; settings are variables']],
    run: by(() => import('./worker.js'), 'worker'),
  },
];

/** Adds all commands to a program that has the options of `CommonOptions`. */
export function addCommands(program: Command): void {
  for (const one of [...campaignCommands, ...resultCommands]) add(program, one);
}
