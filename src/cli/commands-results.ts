/** The commands on what campaigns came to, on conversations and on environments. */
import { by, type CommandText, moreDollars, option, plugin, price, wholeNumber } from './options';
import { GATEWAY_PORT } from './ports';

export const resultCommands: readonly CommandText[] = [
  {
    group: 'Look:',
    usage: 'report [name...]',
    description:
      'print the report of a campaign (default: the newest) and write its page; of several, or of files report.json, their comparison',
    options: [option('--out <dir>', 'write the JSON and the page there')],
    examples: [
      ['campaign report demo --out shared', 'the files, to pass on'],
      ['campaign report demo demo-s2 demo-s3 --out comparison', 'three seeds'],
    ],
    run: by(() => import('./report.js'), 'showReport'),
  },
  {
    group: 'Look:',
    usage: 'show <id>',
    description:
      'print a rollout with its conversation, or the rollouts behind a figure or an artifact; an id may be cut to its first 8 digits',
    options: [option('--campaign <name>', 'whose rollout or figure it is (default: any, of a figure the newest)')],
    examples: [
      ['campaign show 3f2a9c41', 'a rollout that the report names'],
      ['campaign show arms.trace.success_rate --campaign demo', 'a figure of the report'],
    ],
    run: by(() => import('./show.js'), 'show'),
  },
  {
    group: 'Look:',
    usage: 'view [name]',
    description: 'serve a campaign (default: the newest) as a page on this machine: report, all conversations, live',
    options: [option('--port <port>', 'port; 0: any free one', wholeNumber(0, 65535)).default(8235)],
    examples: [['campaign view demo', 'until Ctrl-C']],
    run: by(() => import('./view.js'), 'serveView'),
  },
  {
    group: 'Use:',
    usage: 'serve [name]',
    description:
      "serve a finished campaign's routed policy, or an exported folder, as an OpenAI-compatible endpoint; a newer report is loaded",
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
    ],
    examples: [
      ['campaign serve demo', 'then ask http://127.0.0.1:8100/v1 for model `trace`'],
      ['campaign serve ./shared --model models/base', 'a folder that `campaign export` wrote'],
      ['campaign serve mine --policy-server http://gpu-host:8000', 'in front of a vLLM that runs'],
      ['CAMPAIGN_GATEWAY_API_KEY=... campaign serve demo --host 0.0.0.0', 'for other machines'],
    ],
    run: by(() => import('./serve.js'), 'serve'),
  },
  {
    group: 'Use:',
    usage: 'export <name> <dir>',
    description:
      'write a finished campaign into a folder that can be published and served: adapters, merged adapters, prompts, router, environments, report, cards; or the rollouts alone',
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
      ['campaign serve ./shared', 'serve the folder'],
      ['campaign export demo lines --rollouts --filter stage=test arm=trace', 'for `campaign analyse` and other tools'],
    ],
    run: by(() => import('./export.js'), 'exportTo'),
  },
  {
    group: 'Other:',
    usage: 'analyse <files...>',
    alias: 'analyze',
    description: 'find the capabilities that an agent lacks in its conversations: JSON lines, logs of Inspect',
    options: [
      option('--url <url>', 'OpenAI-compatible endpoint of the language model that reads them, ending in /v1'),
      option('--model <name>', 'its model'),
      option('--api-key-env <name>', 'environment variable with the API key'),
      option('--config <file>', "YAML file with the analyst's fields, such as prompts, or a campaign file"),
      option('--passes <n>', 'labeling passes (default: 10)', wholeNumber(1, 1000)),
      option('--votes <n>', 'passes that must agree to select a capability (default: 8 of 10)', wholeNumber(1, 1000)),
      option('--price <input,output>', 'dollars per million prompt and reply tokens, such as 2.5,15', price),
      option('--max-dollars <dollars>', 'stop before more than this is spent; needs a price', moreDollars),
      option('--scorer <name>', "whose score counts in Inspect's logs with several"),
      option('--name <name>', "folder of the result in the home (default: the first file's name)"),
    ],
    examples: [['campaign analyse conversations.jsonl --url http://127.0.0.1:8000/v1 --model my-model']],
    run: by(() => import('./analyse/run.js'), 'analyse'),
  },
  {
    group: 'Other:',
    usage: 'serve-module <file>',
    hidden: true,
    description: 'serve a module of a synthesized environment on stdin and stdout, for exported folders',
    run: by(() => import('./check/module.js'), 'serveModule'),
  },
];
