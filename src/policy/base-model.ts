/** Asks the Python package about a base model's folder, and derives names and keys from the model's id. */
import { z } from 'zod';
import { digest } from '../store/hash';
import { keptFolder, keptJson, readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import { askPython, type Program } from './python';

const loraModulesSchema = z.object({ unknown: z.array(z.string()), choices: z.array(z.string()) });

interface Question {
  python: string;
  model: string;
  signal?: AbortSignal;
}

const ask = <Answer>(o: {
  command: string;
  question?: object;
  answer: z.ZodType<Answer>;
  of: Question & Pick<Program, 'env' | 'onProgress'>;
}): Promise<Answer> => {
  const { model, ...program } = o.of;
  return askPython({ command: o.command, question: { model, ...o.question }, answer: o.answer, program });
};

/**
 * Returns `<folder>@<hash of all files>`, so that two models in folders of one name are two policies. `home` caches the hash as long as the files do not
 * change. `onProgress` counts bytes. Throws BadInput if the folder holds no model.
 */
export async function baseModelId(
  o: Question & { home: string; onProgress?: (done: number, total: number) => void },
): Promise<string> {
  const { home, onProgress = () => undefined, ...asked } = o;
  const of = { ...asked, env: { CAMPAIGN_HOME: home }, onProgress };
  return (await ask({ command: 'base-id', answer: z.object({ id: z.string() }), of })).id;
}

/** Returns the base of a campaign's policies. It names the context length of a vLLM, which decides rollouts; the embedded server has the model's own. */
export const servedBase = (model: string, { policyServer }: Pick<Campaign, 'policyServer'>): string =>
  policyServer.kind === 'vllm' ? `${model}, ${policyServer.contextTokens} tokens` : model;

export const modelOf = (base: string): string => base.replace(/, \d+ tokens$/, '');

/** Returns the hash in a model's id, which is the same for two folders of one model. */
export const hashOf = (model: string): string => /@([0-9a-f]+)$/.exec(model)?.[1] ?? model;

export const poolOf = (of: { store: string; base: string }): string => digest(of).slice(0, 12);

/** Token ids, and the model's log-prob of each but the first, in nats. */
export const fingerprintSchema = z.object({ ids: z.array(z.number()), logprobs: z.array(z.number()) });
export type Fingerprint = z.infer<typeof fingerprintSchema>;
export const fingerprintKey = (model: string): string => `fingerprint/${hashOf(model)}`;

/** Computes a base model's fingerprint once for each store. Throws PythonFailed if its weights do not fit into memory. */
export async function keepFingerprint(o: Question & { store: ArtifactStore; id: string }): Promise<void> {
  const { store, id, ...of } = o;
  const provenance = { key: fingerprintKey(id), producer: 'prepare', inputs: [] };
  await keptJson(store, provenance, () => ask({ command: 'fingerprint', answer: fingerprintSchema, of }));
}

export async function readFingerprint(store: ArtifactStore, model: string): Promise<Fingerprint | undefined> {
  const ref = await store.find(fingerprintKey(model));
  return ref && readJson(store, ref, fingerprintSchema);
}

/**
 * The modules that a LoRA trains, by the trainer's own rule, in some seconds; at once where `home`, of the campaigns, has kept it. Throws BadInput where
 * its files are damaged, or of no known model.
 */
export const loraModules = (o: Question & { targetModules: readonly string[]; home?: string | undefined }) => {
  const { targetModules, home, ...asked } = o;
  const of = { ...asked, ...(home !== undefined && { env: { CAMPAIGN_HOME: home } }) };
  return ask({ command: 'check-model', question: { target_modules: targetModules }, answer: loraModulesSchema, of });
};

interface NewAdapter {
  targetModules: readonly string[];
  rank: number;
}

/** Writes a LoRA that changes nothing into a folder that is made for it. */
export async function writeAdapter(o: Question & NewAdapter & { folder: string }): Promise<void> {
  const { targetModules, rank, folder, ...of } = o;
  const question = { target_modules: targetModules, adapter: { rank, output_dir: folder } };
  await ask({ command: 'check-model', question, answer: z.unknown(), of });
}

/** A LoRA to try a policy server with, made once: it has to be where the server sees all others. `base`: of the campaign's policies. */
export function keptAdapter(o: Question & NewAdapter & { store: ArtifactStore; base: string }): Promise<ArtifactRef> {
  const { store, base, ...asked } = o;
  const { targetModules, rank } = asked;
  const key = `blank-adapter/${digest({ base: hashOf(modelOf(base)), targetModules, rank })}`;
  const about = { key, producer: 'try-adapter', inputs: [] };
  return keptFolder(store, about, (folder) => writeAdapter({ ...asked, folder }));
}
