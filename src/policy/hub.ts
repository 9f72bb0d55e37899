/** Base models by name: where the cache of huggingface_hub keeps them, and their download by the Python package. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Campaign } from '../domain/campaign';
import { jsonText } from '../domain/messages';
import { askPython, type Program } from './python';

type BaseModel = Campaign['baseModel'];

const COMMIT = /^[0-9a-f]{40}$/;
const indexSchema = jsonText.pipe(z.object({ weight_map: z.record(z.string(), z.string()) }));
const readIf = (file: string): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);

/** Returns the folder of a base model on this machine: `path`, or where the cache keeps `hub`. It may not exist yet. */
export function baseFolder({ path, hub = '', revision = 'main' }: BaseModel): string {
  if (path !== undefined) return path;
  const { HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = process.env;
  const home = HF_HOME ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'huggingface');
  const model = join(HF_HUB_CACHE ?? join(home, 'hub'), `models--${hub.replace('/', '--')}`);
  // A branch is the commit that it was when it was downloaded, so that a campaign resumes with its own model.
  const commit = COMMIT.test(revision) ? revision : readIf(join(model, 'refs', revision))?.trim();
  return join(model, 'snapshots', commit ?? revision);
}

/** Returns the id of a model that is named by commit, equal to the id that trainer/model_folder.py computes from the folder; undefined for others. */
export const hubId = ({ hub, revision = '' }: BaseModel): string | undefined =>
  hub !== undefined && COMMIT.test(revision) ? `${hub}@${revision.slice(0, 12)}` : undefined;

/** Returns whether `run` has to download the model first. Weights are downloaded last. */
export function isToDownload(baseModel: BaseModel): boolean {
  if (baseModel.hub === undefined) return false;
  const folder = baseFolder(baseModel);
  const index = indexSchema.safeParse(readIf(join(folder, 'model.safetensors.index.json'))).data;
  const weights = index ? Object.values(index.weight_map) : ['model.safetensors'];
  return !weights.every((file) => existsSync(join(folder, file)));
}

const answerSchema = z.object({ commit: z.string(), bytes: z.number(), license: z.string().nullable() });

/** Asks the hub for commit, size and licence of a model, and downloads it on request. Throws what `askPython` does. */
export function askHub(
  o: { baseModel: BaseModel; download: boolean } & Pick<Program, 'python' | 'signal' | 'onProgress'>,
): Promise<z.infer<typeof answerSchema>> {
  const { baseModel, download, ...program } = o;
  const { hub, revision = 'main' } = baseModel;
  const { HF_TOKEN } = process.env;
  return askPython({
    command: 'fetch-model',
    question: { hub, revision, download },
    answer: answerSchema,
    program: { ...program, ...(HF_TOKEN !== undefined && { keys: { HF_TOKEN } }) },
  });
}
