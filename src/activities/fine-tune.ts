/** Trains one LoRA on conversations that somebody brought: the sft trainer as a learner, which asks for no rollouts. */
import { join } from 'node:path';
import { replaceFile } from '../artifacts/durable-file';
import { digest } from '../artifacts/hash';
import type { Message, ToolSchema } from '../domain/messages';
import { toWireMessage, toWireTools } from '../policy/wire';
import { asideIn, readJson, type GpuDependencies } from './context';
import { conversationsSchema } from './take-conversations';
import { loraJob } from './train';
import { runTrainer } from './trainer-run';
import type { GpuActivities } from './types';

/** Changes whenever the same job would come to other weights. */
const SFT_VERSION = '2';

export function createFineTune(deps: GpuDependencies): Pick<GpuActivities, 'fineTune'> {
  const { store, home } = deps;
  return {
    async fineTune({ name, maker, base, baseModelPath, environment, conversations, training, seed, ...limits }) {
      const { tools } = await (await deps.environments.get(environment)).describe();
      const { epochs, steps, rowsPerStep } = training;
      const job = { ...loraJob(training), seed, epochs, steps: steps ?? null, rows_per_step: rowsPerStep };
      const id = digest({ version: SFT_VERSION, maker, job, base, conversations: conversations.sha256, tools });
      return runTrainer(deps, {
        ...{ name, id, program: 'sft', limits },
        async job(folder) {
          const path = join(folder, 'conversations.jsonl');
          const taken = await readJson(store, conversations, conversationsSchema);
          const body = taken
            .map((one) => `${JSON.stringify(lineOf({ ...one, tools: one.tools ?? tools }))}\n`)
            .join('');
          await replaceFile({ path, body, aside: asideIn(home) });
          return { ...job, base_model: baseModelPath, init_adapter: null, conversations: path, output_dir: folder };
        },
        learning: async () => ({
          ...{ base, checkpointEvery: training.checkpointEvery },
          ...(steps !== undefined && { steps }),
          given: conversations,
        }),
      });
    },
  };
}

/** As the policy server is sent them. */
const lineOf = ({ id, messages, tools }: { id: string; messages: Message[]; tools: ToolSchema[] }): object => ({
  id,
  messages: messages.map(toWireMessage),
  tools: tools.length > 0 ? toWireTools(tools) : null,
});
