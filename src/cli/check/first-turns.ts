/** Samples the first turn of the base model on a few train tasks and says what the policy server read from it. */
import { MissingRequirement } from '../../checks/check';
import { forEachBounded } from '../../domain/concurrency';
import type { Campaign } from '../../domain/campaign';
import { agentView, type AssistantMessage, callText, type ToolSchema } from '../../domain/messages';
import { valueProblem } from '../../environments/json-schema';
import { openEnvironment } from '../../environments/kinds';
import { baseFolder, isToDownload } from '../../policy/hub';
import { servedBase } from '../../policy/base-model';
import { createPolicyClient } from '../../policy/client';
import { createMerger } from '../../policy/merge';
import { clientSettings } from '../../policy/server';
import type { Turn } from '../../policy/wire';
import { withPlugins } from '../../plugins';
import { openStore } from '../../store/open-store';
import { baseIdOf } from '../campaign-file';
import { type Home, pythonPath } from '../project';
import { Service } from '../services/service';
import { policyServerService } from '../services/services';

const TURNS = 8;

const readings = {
  call: 'call a tool that the target offers',
  'unknown tool': 'call a tool that the target does not offer',
  'wrong arguments': 'call a tool with arguments that its schema refuses',
  text: 'are text without a call',
  'cut off': 'are cut off at rollouts.sampling.maxTokens',
  empty: 'are empty',
} as const;
type Reading = keyof typeof readings;

export interface FirstTurn {
  task: string;
  reading: Reading;
  text: string;
  calls: readonly string[];
}

export interface FirstTurns {
  turns: readonly FirstTurn[];
  /** Number of tools that the target offers. */
  tools: number;
}

/** Returns what was read from a sampled turn. */
export function readTurn(
  { message, finishReason }: { message: AssistantMessage; finishReason: Turn['finishReason'] },
  tools: readonly ToolSchema[],
): Reading {
  const { content, toolCalls = [] } = message;
  if (toolCalls.length === 0) {
    if (finishReason === 'length') return 'cut off';
    return content.trim() === '' ? 'empty' : 'text';
  }
  const schemas = toolCalls.map((call) => tools.find(({ name }) => name === call.name)?.parameters);
  if (schemas.includes(undefined)) return 'unknown tool';
  const fits = toolCalls.every((call, n) => valueProblem(schemas[n]!, call.arguments) === undefined);
  return fits ? 'call' : 'wrong arguments';
}

/** Starts the embedded policy server, if the campaign has one, until the turns are sampled. */
export async function firstTurns(campaign: Campaign, home: Home): Promise<FirstTurns> {
  const { policyServer, baseModel, training } = campaign;
  if (isToDownload(baseModel))
    throw new MissingRequirement('the base model is not downloaded yet; campaign run downloads it');
  if (policyServer.kind === 'vllm') return sampleTurns(campaign, home, policyServer.url);
  const { spec, url } = policyServerService({ ...policyServer, dtype: training.dtype, model: baseFolder(baseModel) });
  const service = new Service(spec, home.logs);
  try {
    await service.start();
    return await sampleTurns(campaign, home, url());
  } finally {
    await service.stop();
  }
}

async function sampleTurns(campaign: Campaign, home: Home, url: string): Promise<FirstTurns> {
  const { target, rollouts, seed, plugins } = campaign;
  const { sampling, concurrency } = rollouts;
  const store = await openStore(home.root);
  const baseId = await baseIdOf(campaign, home);
  const merge = createMerger({ store, python: pythonPath() });
  const client = createPolicyClient({ ...clientSettings(url, TURNS), store, merge, baseId });
  const policy = { base: servedBase(baseId, campaign), adapters: [] };
  const environment = await openEnvironment(target, { store, kinds: withPlugins(plugins).environments });
  const { signal } = new AbortController();
  const turns = new Map<string, FirstTurn>();
  let offered = 0;

  async function play(task: string): Promise<void> {
    const episode = await environment.reset({ id: task, seed }, signal);
    try {
      const { tools, messages } = episode.start;
      offered = Math.max(offered, tools.length);
      const turn = await client.sample({ policy, messages: agentView(messages), tools, sampling, seed, signal });
      const { content, toolCalls = [] } = turn.message;
      turns.set(task, { task, reading: readTurn(turn, tools), text: content, calls: toolCalls.map(callText) });
    } finally {
      await episode.close().catch(() => undefined);
    }
  }

  try {
    const all = await environment.tasks('train');
    const count = Math.min(TURNS, all.length);
    const items = Array.from({ length: count }, (_, n) => all[Math.floor((n * all.length) / count)]!.id);
    await forEachBounded({ items, concurrency: Math.min(concurrency, TURNS), signal, work: play });
    return { turns: items.flatMap((task) => turns.get(task) ?? []), tools: offered };
  } finally {
    client.close();
    await environment.close().catch(() => undefined);
  }
}

/** Counts the turns by what was read from them. */
export function readingLines({ turns, tools }: FirstTurns): string[] {
  const counts = (Object.keys(readings) as Reading[]).flatMap((reading) => {
    const n = turns.filter((turn) => turn.reading === reading).length;
    return n === 0 ? [] : [`${n} of ${turns.length} ${readings[reading]}`];
  });
  const isSilent = tools > 0 && !turns.some(({ reading }) => reading === 'call' || reading === 'wrong arguments');
  const fix =
    'take a base model that calls tools, check that its chat template shows them and that the policy server reads its calls (docs/models.md)';
  return [...counts, ...(isSilent ? [`warning: no turn calls a tool of the target; ${fix}`] : [])];
}
