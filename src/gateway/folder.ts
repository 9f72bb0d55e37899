/**
 * An exported campaign: `router.json` and the files that it names. Invariants: its files name no path outside it; its content is stored as
 * `exported/<hash of its content>`, under no key that a campaign looks up, since anyone may have written the folder.
 */
import { cp, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../store/durable-file';
import { digest, sha256 } from '../store/hash';
import { keptFolder, keptJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { badInput } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { type FixedPolicy, samplingSchema } from '../domain/rollout';
import { type Fingerprint, fingerprintSchema } from '../policy/base-model';
import { fittedRouterSchema, type FittedRouter, type RouterKind } from '../routing/router';
import { servedBy, type Served } from './served';

export const ROUTER_FILE = 'router.json';
export const FINGERPRINT_FILE = 'fingerprint.json';

const inside = (folder: string) => z.string().regex(new RegExp(`^${folder}/[\\w+.-]*[\\w+-]$`), `a name in ${folder}/`);

const optionSchema = z.object({
  name: z.string(),
  adapters: z.array(z.object({ folder: inside('adapters'), weight: z.number() })),
  /** All its adapters as one. */
  merged: inside('sums').optional(),
  prompt: z.object({ file: inside('prompts'), place: z.enum(['before', 'instead']) }).optional(),
});

/** docs/serving.md describes it. */
const exportedRouterSchema = z.object({
  format: z.literal(1, 'this program reads format 1'),
  campaign: z.string(),
  /** The base model's id, by which a server is known to have it, and its public name. */
  base: z.object({ id: z.string(), name: z.string() }),
  sampling: samplingSchema.optional(),
  ...fittedRouterSchema.omit({ options: true }).shape,
  options: z.array(optionSchema).min(1),
  baselines: z.array(optionSchema).default([]),
});
export type ExportedRouter = z.infer<typeof exportedRouterSchema>;
export type ExportedOption = z.infer<typeof optionSchema>;

/** Throws BadInput if the folder is no export, or one of another version. */
async function readExportedRouter(folder: string): Promise<ExportedRouter> {
  const file = join(folder, ROUTER_FILE);
  const text = await ifThere(readFile(file, 'utf8'));
  const parsed = jsonText.pipe(exportedRouterSchema).safeParse(text ?? '');
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const problem = text === undefined ? 'is missing' : `${issue?.path.join('.') || 'the whole'}: ${issue?.message}`;
  throw badInput(`${file}: ${problem}; name a folder that \`campaign export\` wrote`);
}

/** Reads the policies of an exported folder, and puts the artifacts that they need into the store. */
export async function readServed(o: {
  folder: string;
  store: ArtifactStore;
  routers: readonly RouterKind[];
}): Promise<Served> {
  const { folder, store, routers } = o;
  await checkLinks(folder);
  const { campaign, base, options, baselines, sampling, ...fit } = await readExportedRouter(folder);
  const kept = new Map<string, ArtifactRef>();
  const keep = async (name: string): Promise<ArtifactRef> => {
    const ref = kept.get(name) ?? (await keepFiles(store, join(folder, name)));
    kept.set(name, ref);
    return ref;
  };
  const policyOf = async ({ adapters, merged, prompt }: ExportedOption): Promise<FixedPolicy> => {
    const policy: FixedPolicy = { base: base.id, adapters: [] };
    // The merged adapter is the policy's only one: the store's own merge of its parts is another artifact.
    const parts = merged ? [{ folder: merged, weight: 1 }] : adapters;
    for (const { folder: of, weight } of parts) policy.adapters.push({ ref: await keep(of), weight });
    if (prompt) policy.prompt = { text: await readFile(join(folder, prompt.file), 'utf8'), place: prompt.place };
    return policy;
  };
  const policiesOf = async (some: readonly ExportedOption[]): Promise<FittedRouter['options']> => {
    const policies: FittedRouter['options'] = [];
    for (const one of some) policies.push({ name: one.name, policy: await policyOf(one) });
    return policies;
  };
  const fitted = fittedRouterSchema.parse({ ...fit, options: await policiesOf(options) });
  const others = await policiesOf(baselines);
  const inputs = [...kept.values()];
  const key = `exported/${digest({ router: fitted })}`;
  const router = await keptJson(store, { key, producer: 'export', inputs }, () => fitted);
  const fingerprint = await fingerprintIn(folder);
  return { ...(await servedBy({ store, name: campaign, router, routers, baselines: others, sampling })), fingerprint };
}

/** The hub's cache holds links to the files in `blobs`. Throws BadInput for one that leads elsewhere, or to no file. */
async function checkLinks(folder: string): Promise<void> {
  const entries = (await ifThere(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  for (const entry of entries.filter((one) => one.isSymbolicLink())) {
    const link = join(entry.parentPath, entry.name);
    const root = await realpath(folder);
    const to = await ifThere(realpath(link));
    const isInside = [root, join(root, '..', '..', 'blobs')].some((one) => to?.startsWith(`${one}/`));
    if (to === undefined || !isInside || !(await stat(to)).isFile())
      throw badInput(`${link} is a link out of the folder, or to no file; put the file itself there`);
  }
}

/** Stores a copy of a folder under the hash of its files, because files of the store are read-only. */
async function keepFiles(store: ArtifactStore, folder: string): Promise<ArtifactRef> {
  const files = await filesIn(folder);
  const hashes = await Promise.all(files.map(async (file) => [file, sha256(await readFile(join(folder, file)))]));
  const about = { key: `exported/${digest(hashes)}`, producer: 'export', inputs: [] };
  return keptFolder(store, about, async (copy) => {
    for (const file of files) await cp(join(folder, file), join(copy, file), { dereference: true });
  });
}

/** All but its card, by their ways from it. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory() && entry.name !== 'README.md');
  if (files.length > 0) return files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
  throw badInput(`${folder} holds no adapter; export the campaign again`);
}

async function fingerprintIn(folder: string): Promise<Fingerprint | undefined> {
  const text = await ifThere(readFile(join(folder, FINGERPRINT_FILE), 'utf8'));
  return text === undefined ? undefined : fingerprintSchema.parse(JSON.parse(text));
}
