/** The commands on what campaigns came to, on conversations and on environments. */
import { by, type CommandText, dollars, json, moreDollars, option, plugin, wholeNumber } from './options';
import { GATEWAY_PORT } from './ports';

export const resultCommands: readonly CommandText[] = [
  {
    usage: 'report [name]',
    description: 'show the report of a campaign (default: the newest): table, page, JSON',
    options: [json('print report.json'), option('--out <dir>', 'write report.json and report.html there')],
    examples: [['campaign report demo --out shared', 'the files, to pass on']],
    run: by(() => import('./report.js'), 'showReport'),
  },
  {
    usage: 'compare <report...>',
    description: 'compare several runs of one campaign: names of campaigns, or files report.json',
    options: [
      json('print JSON instead of a table'),
      option('--out <dir>', 'write comparison.json and comparison.html there'),
    ],
    examples: [['campaign compare demo-1 demo-2 demo-3 --out comparison', 'three seeds']],
    run: by(() => import('./report.js'), 'showComparison'),
  },
  {
    usage: 'lineage <start>',
    description: "print the rollouts behind a figure's id, an artifact (key or beginning of its sha256) or a rollout",
    options: [
      option('--campaign <name>', 'whose report holds the figure (default: the newest)'),
      json('print the tree as JSON'),
    ],
    examples: [['campaign lineage arms.trace.success_rate --campaign demo', 'a figure of the report']],
    run: by(() => import('./report.js'), 'showLineage'),
  },
  {
    usage: 'view [name]',
    description: 'serve a campaign (default: the newest) as a page on this machine: report, all conversations, live',
    options: [
      option('--port <port>', 'port; 0: any free one', wholeNumber(0, 65535)).default(8235),
      json('print where it listens as JSON'),
    ],
    examples: [['campaign view demo', 'until Ctrl-C']],
    run: by(() => import('./view.js'), 'serveView'),
  },
  {
    usage: 'show <rollout>',
    description: 'print a rollout: its conversation, what it came to and why; by its id, or the beginning of it',
    options: [option('--campaign <name>', 'whose rollout it is (default: any)'), json()],
    examples: [['campaign show 3f2a9c41', 'an id that the report or `campaign lineage` names']],
    run: by(() => import('./view.js'), 'showRollout'),
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
      plugin("plug-in of the router's kind, for a folder"),
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
    run: by(() => import('./gateway.js'), 'serveGateway'),
  },
  {
    usage: 'export <name> <dir>',
    description:
      'write a finished campaign into a folder that can be published and served: adapters, sums, prompts, router, environments, report, cards; or the rollouts alone',
    options: [
      option(
        '--rollouts',
        'only the rollouts, also of a campaign that still runs: JSON lines in the OpenAI form, a file for each batch',
      ),
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
      ['campaign export demo lines --rollouts --filter stage=test arm=trace', 'for `campaign analyse` and other tools'],
    ],
    run: by(() => import('./export.js'), 'exportTo'),
  },
  {
    usage: 'analyse <files...>',
    alias: 'analyze',
    description: 'find the capabilities that an agent lacks in its conversations: JSON lines, logs of Inspect',
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
      option('--scorer <name>', "whose score counts in Inspect's logs with several"),
      option('--name <name>', "folder of the result in the home (default: the first file's name)"),
      option('--yes', 'go on without asking'),
      json('print analysis.json instead of a table'),
    ],
    examples: [
      ['campaign analyse conversations.jsonl --url http://127.0.0.1:8000/v1 --model my-model --max-dollars 5'],
    ],
    run: by(() => import('./analyse/run.js'), 'analyse'),
  },
  {
    usage: 'serve-module <file>',
    hidden: true,
    description: 'serve a module of a synthesized environment on stdin and stdout, for exported folders',
    run: by(() => import('./check/module.js'), 'serveModule'),
  },
];
