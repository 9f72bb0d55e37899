/** What the Python package tells of a base model's folder, and what follows from which one it is. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { canonical, digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import { tokenCountsSchema, type TokenCounts } from '../domain/base-check';
import type { Campaign } from '../domain/campaign';
import { runPython, type Program } from './python';

const loraModulesSchema = z.object({
  /** By their whole names, with the sizes of what goes in and comes out. */
  modules: z.array(z.object({ name: z.string(), in: z.number(), out: z.number() })),
  /** Of `targetModules`, what the model does not have. */
  unknown: z.array(z.string()),
  /** Names that `targetModules` may have. */
  choices: z.array(z.string()),
});
type LoraModules = z.infer<typeof loraModulesSchema>;

const idSchema = z.object({ id: z.string() });

interface Asked {
  python: string;
  /** The base model's folder. */
  model: string;
  signal?: AbortSignal;
}

/**
 * `<folder>@<hash of all files>`: another base is another policy, also in a folder of the same name. `home`: of the campaigns; it keeps what was
 * found, so that files that have not changed are not read again. `onProgress`: in bytes. Throws BadInput where there is no model.
 */
export const baseModelId = async ({
  home,
  onProgress = () => undefined,
  ...asked
}: Asked & { home: string; onProgress?: (done: number, total: number) => void }): Promise<string> =>
  idSchema.parse(await ask('base-id', {}, { ...asked, env: { CAMPAIGN_HOME: home }, onProgress })).id;

/** The base of a campaign's policies. What a server cuts off at its context decides rollouts; the embedded one has the model's own. */
export const servedBase = (model: string, { policyServer }: Pick<Campaign, 'policyServer'>): string =>
  policyServer.kind === 'vllm' ? `${model}, ${policyServer.contextTokens} tokens` : model;

/** Of a base, without the context of its server. */
export const modelOf = (base: string): string => base.replace(/, \d+ tokens$/, '');

/** What two folders of one model have in common. */
export const hashOf = (model: string): string => /@([0-9a-f]+)$/.exec(model)?.[1] ?? model;

const fingerprintSchema = z.object({ ids: z.array(z.number()), logprobs: z.array(z.number()) });
/** Some token ids and, of each but the first, the model's log-prob in nats. */
type Fingerprint = z.infer<typeof fingerprintSchema>;

const fingerprintKey = (model: string): string => `fingerprint/${hashOf(model)}`;

/**
 * That of a base model, taken once a store: its weights are loaded. Throws PythonFailed where there is not the memory for it, and what Python
 * refuses as BadInput.
 */
export async function keepFingerprint(o: Asked & { store: ArtifactStore; id: string }): Promise<void> {
  const { store, id, ...asked } = o;
  const key = fingerprintKey(id);
  if (await store.find(key)) return;
  const taken = fingerprintSchema.parse(await ask('fingerprint', {}, asked));
  await store.put({ key, producer: 'prepare', inputs: [], mediaType: 'application/json', body: canonical(taken) });
}

/** Undefined where none was taken. `model`: its id. */
export async function readFingerprint(store: ArtifactStore, model: string): Promise<Fingerprint | undefined> {
  const ref = await store.find(fingerprintKey(model));
  return ref && fingerprintSchema.parse(JSON.parse((await store.read(ref)).toString('utf8')));
}

/** The pool of a campaign that names none: of its store and its base. */
export const poolOf = (of: { store: string; base: string }): string => digest(of).slice(0, 12);

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

/** A LoRA of a rank that changes nothing, in a folder that is made for it: to see whether a server takes such ones. */
export const writeBlankAdapter = async ({
  targetModules,
  rank,
  folder,
  ...asked
}: Asked & { targetModules: readonly string[]; rank: number; folder: string }): Promise<void> =>
  void (await ask('check-model', { target_modules: targetModules, blank: { rank, output_dir: folder } }, asked));

async function ask(
  command: string,
  question: object,
  { model, ...program }: Asked & Pick<Program, 'env' | 'onProgress'>,
): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'base-model-'));
  try {
    const [from, to] = [join(folder, 'question.json'), join(folder, 'answer.json')];
    await writeFile(from, JSON.stringify({ model, ...question }));
    await runPython({ ...program, args: [command, '--in', from, '--out', to] });
    return JSON.parse(await readFile(to, 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
