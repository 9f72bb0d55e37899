/** What the Python package tells of a base model's folder, and what follows from which one it is. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { digest } from '../artifacts/hash';
import { keptJson, readJson, type ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import { askPython, type Program } from './python';

const loraModulesSchema = z.object({
  /** By their whole names, with the sizes of what goes in and comes out. */
  modules: z.array(
    // `experts`: so many of a layer are in one parameter.
    z.object({ name: z.string(), in: z.number(), out: z.number(), experts: z.number().default(1) }),
  ),
  /** Of `targetModules`, what the model does not have. */
  unknown: z.array(z.string()),
  /** Names that `targetModules` may have. */
  choices: z.array(z.string()),
});

interface Asked {
  python: string;
  /** The base model's folder. */
  model: string;
  signal?: AbortSignal;
}

/** What a subcommand of the Python package answers about a model's folder. Throws BadInput where it refuses. */
const ask = <Answer>(o: {
  command: string;
  question?: object;
  answer: z.ZodType<Answer>;
  of: Asked & Pick<Program, 'env' | 'onProgress'>;
}): Promise<Answer> => {
  const { model, ...program } = o.of;
  return askPython({ command: o.command, question: { model, ...o.question }, answer: o.answer, program });
};

/**
 * `<folder>@<hash of all files>`: another base is another policy, also in a folder of the same name. `home`: of the campaigns; it keeps what was
 * found, so that files that have not changed are not read again. `onProgress`: in bytes. Throws BadInput where there is no model.
 */
export async function baseModelId(
  o: Asked & { home: string; onProgress?: (done: number, total: number) => void },
): Promise<string> {
  const { home, onProgress = () => undefined, ...asked } = o;
  const of = { ...asked, env: { CAMPAIGN_HOME: home }, onProgress };
  return (await ask({ command: 'base-id', answer: z.object({ id: z.string() }), of })).id;
}

/** The base of a campaign's policies. What a server cuts off at its context decides rollouts; the embedded one has the model's own. */
export const servedBase = (model: string, { policyServer }: Pick<Campaign, 'policyServer'>): string =>
  policyServer.kind === 'vllm' ? `${model}, ${policyServer.contextTokens} tokens` : model;

/** Of a base, without the context of its server. */
export const modelOf = (base: string): string => base.replace(/, \d+ tokens$/, '');

/** What two folders of one model have in common. */
export const hashOf = (model: string): string => /@([0-9a-f]+)$/.exec(model)?.[1] ?? model;

/** The pool of a campaign that names none: of its store and its base. */
export const poolOf = (of: { store: string; base: string }): string => digest(of).slice(0, 12);

/** Some token ids and, of each but the first, the model's log-prob in nats. */
export const fingerprintSchema = z.object({ ids: z.array(z.number()), logprobs: z.array(z.number()) });
export type Fingerprint = z.infer<typeof fingerprintSchema>;
export const fingerprintKey = (model: string): string => `fingerprint/${hashOf(model)}`;

/** Takes a base model's fingerprint once a store. Throws PythonFailed where there is not the memory for its weights. */
export async function keepFingerprint(o: Asked & { store: ArtifactStore; id: string }): Promise<void> {
  const { store, id, ...of } = o;
  const provenance = { key: fingerprintKey(id), producer: 'prepare', inputs: [] };
  await keptJson(store, provenance, () => ask({ command: 'fingerprint', answer: fingerprintSchema, of }));
}

/** Undefined where none was taken. `model`: its id. */
export async function readFingerprint(store: ArtifactStore, model: string): Promise<Fingerprint | undefined> {
  const ref = await store.find(fingerprintKey(model));
  return ref && readJson(store, ref, fingerprintSchema);
}

/**
 * The modules that a LoRA trains, by the trainer's own rule, in some seconds; at once where `home`, of the campaigns, has kept it. Throws BadInput where
 * its files are damaged, or of no known model.
 */
export const loraModules = (o: Asked & { targetModules: readonly string[]; home?: string | undefined }) => {
  const { targetModules, home, ...asked } = o;
  const of = { ...asked, ...(home !== undefined && { env: { CAMPAIGN_HOME: home } }) };
  return ask({ command: 'check-model', question: { target_modules: targetModules }, answer: loraModulesSchema, of });
};

interface NewAdapter {
  targetModules: readonly string[];
  rank: number;
}

/** Writes a LoRA that changes nothing into a folder that is made for it. */
export async function writeAdapter(o: Asked & NewAdapter & { folder: string }): Promise<void> {
  const { targetModules, rank, folder, ...of } = o;
  const question = { target_modules: targetModules, adapter: { rank, output_dir: folder } };
  await ask({ command: 'check-model', question, answer: z.unknown(), of });
}

/** A LoRA to try a policy server with, made once: it has to be where the server sees all others. `base`: of the campaign's policies. */
export async function keptAdapter(
  o: Asked & NewAdapter & { store: ArtifactStore; base: string },
): Promise<ArtifactRef> {
  const { store, base, ...asked } = o;
  const { targetModules, rank } = asked;
  const key = `blank-adapter/${digest({ base: hashOf(modelOf(base)), targetModules, rank })}`;
  const known = await store.find(key);
  if (known) return known;
  const work = await mkdtemp(join(tmpdir(), 'adapter-'));
  try {
    const folder = join(work, 'adapter');
    await writeAdapter({ ...asked, folder });
    return await store.putFolder({ key, producer: 'try-adapter', inputs: [], folder });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
