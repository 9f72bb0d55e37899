/** What the Python package tells of a base model's folder. Invariant: no weights are read. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { tokenCountsSchema, type TokenCounts } from '../domain/base-check';
import { runPython } from './python';

const loraModulesSchema = z.object({
  /** By their whole names, with the sizes of what goes in and comes out. */
  modules: z.array(z.object({ name: z.string(), in: z.number(), out: z.number() })),
  /** Of `targetModules`, what the model does not have. */
  unknown: z.array(z.string()),
  /** Names that `targetModules` may have. */
  choices: z.array(z.string()),
});
export type LoraModules = z.infer<typeof loraModulesSchema>;

interface Asked {
  python: string;
  /** The base model's folder. */
  model: string;
  signal?: AbortSignal;
}

/** What its tokenizer does not know of some texts, in well under a second. Throws BadInput if it holds a tokenizer that can't be read. */
export const checkTokens = async ({ texts, ...asked }: Asked & { texts: readonly string[] }): Promise<TokenCounts> =>
  tokenCountsSchema.parse(await ask('check-tokens', { texts }, asked));

/**
 * The modules that a LoRA trains, by the trainer's own rule, in some seconds. Throws BadInput if it holds files that are not whole, or no
 * model that transformers knows.
 */
export const loraModules = async ({
  targetModules,
  ...asked
}: Asked & { targetModules: readonly string[] }): Promise<LoraModules> =>
  loraModulesSchema.parse(await ask('check-model', { target_modules: targetModules }, asked));

async function ask(command: string, question: object, { python, model, signal }: Asked): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'base-model-'));
  try {
    const [from, to] = [join(folder, 'question.json'), join(folder, 'answer.json')];
    await writeFile(from, JSON.stringify({ model, ...question }));
    await runPython({ python, args: [command, '--in', from, '--out', to], ...(signal && { signal }) });
    return JSON.parse(await readFile(to, 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
