/** Samples the first turn of the base model on a few train tasks and says what the policy server read from it. */
import { forEachBounded } from '../../domain/concurrency';
import type { Campaign } from '../../domain/campaign';
import { agentView, type AssistantMessage, callText, type ToolSchema } from '../../domain/messages';
import { valueProblem } from '../../environments/json-schema';
import { openEnvironment } from '../../environments/open';
import type { PolicyClient } from '../../policy/client';
import type { Turn } from '../../policy/wire';
import { withPlugins } from '../../plugins';
import type { ArtifactStore } from '../../store/store';
import { UserError } from '../errors';
import type { Home } from '../project';
import { Service } from '../run/service';
import { policyServerService } from '../run/services';
import { withClient } from './model';

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
  const { policyServer, baseModel } = campaign;
  if (policyServer.kind === 'vllm') return sampleTurns(campaign, home, policyServer.url);
  const { spec, url } = policyServerService({ ...policyServer, model: baseModel.path });
  const service = new Service(spec, home.logs);
  try {
    await service.start();
    return await sampleTurns(campaign, home, url());
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${error.evidence.at(-1) ?? error.message}; read ${home.logs}/policy-server.log`);
  } finally {
    await service.stop();
  }
}

const sampleTurns = (campaign: Campaign, home: Home, url: string): Promise<FirstTurns> =>
  withClient({ campaign, home, url }, ({ client, store, base }) => playFirst({ campaign, client, store, base }));

async function playFirst(o: {
  campaign: Campaign;
  client: Pick<PolicyClient, 'sample'>;
  store: ArtifactStore;
  base: string;
}): Promise<FirstTurns> {
  const { campaign, client, store, base } = o;
  const { target, rollouts, seed, plugins } = campaign;
  const { sampling, concurrency } = rollouts;
  const environment = await openEnvironment(target, { store, kinds: withPlugins(plugins).environments });
  const { signal } = new AbortController();
  const turns = new Map<string, FirstTurn>();
  let offered = 0;

  async function play(task: string): Promise<void> {
    const episode = await environment.reset({ id: task, seed }, signal);
    try {
      const { tools, messages } = episode.start;
      offered = Math.max(offered, tools.length);
      const policy = { base, adapters: [] };
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
    await environment.close().catch(() => undefined);
  }
}

/** Counts the turns by what was read from them. */
export function readingLines({ turns, tools }: FirstTurns): string[] {
  const counts = (Object.keys(readings) as Reading[]).flatMap((reading) => {
    const n = turns.filter((turn) => turn.reading === reading).length;
    return n === 0 ? [] : [`${n} of ${turns.length} ${readings[reading]}`];
  });
  const isSilent = tools > 0 && !turns.some(({ reading }) => reading === 'call');
  const fix =
    'take a base model that calls tools, check that its chat template shows them and that the policy server reads its calls (docs/models.md)';
  return [...counts, ...(isSilent ? [`warning: no turn calls a tool of the target; ${fix}`] : [])];
}
