/** A fitted router with made-up adapters in a store, and a gateway in front of a policy server that serves them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keptJson, type ArtifactStore } from '../../src/store/store';
import { digest } from '../../src/store/hash';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { mergedPolicy } from '../../src/domain/policies';
import type { FixedPolicy } from '../../src/domain/rollout';
import { createGateway, type GatewayLimits } from '../../src/gateway/app';
import { listen } from '../../src/gateway/listen';
import { servedBy, type Served } from '../../src/gateway/served';
import { createPolicyClient } from '../../src/policy/client';
import { createMerger } from '../../src/policy/merge';
import { routers } from '../../src/routing';
import type { FittedRouter } from '../../src/routing/router';
import { BASE } from './dialect-server';
import { newFolder } from './temporary-folder';

export const PROMPT = { text: 'be brief', place: 'before' } as const;

/** An adapter as PEFT writes it, made on a machine of ours. */
export function putAdapter(store: ArtifactStore, name: string): Promise<ArtifactRef> {
  const folder = newFolder();
  const config = { name, r: 4, base_model_name_or_path: '/secret/models/base' };
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'adapter_model.safetensors'), name);
  return store.putFolder({ key: `adapter/${name}`, producer: 'test', inputs: [], folder });
}

/** Sends what says "book" to `books`, what says "ship" to `ships`, what says "brief" to `prompted`, and all else to base. */
export async function fitByWords(
  store: ArtifactStore,
  { version = '5', constant }: { version?: string; constant?: string } = {},
): Promise<ArtifactRef> {
  const policy = async (name?: string): Promise<FixedPolicy> => ({
    base: BASE,
    adapters: name === undefined ? [] : [{ ref: await putAdapter(store, name), weight: 1 }],
  });
  const words = ['book', 'ship', 'brief'];
  const scored = { mean: 0.5, standardError: 0.1, n: 10 };
  const option = (name: string, intercept: number, word?: string) => ({
    name,
    coef: words.map((one) => (one === word ? 1 : 0)),
    intercept,
  });
  const fitted: FittedRouter = {
    maker: { kind: 'learned', version, options: { folds: 5 } },
    options: [
      { name: 'base', policy: await policy() },
      { name: 'books', policy: await policy('books') },
      { name: 'ships', policy: await policy('ships') },
      { name: 'prompted', policy: { ...(await policy()), prompt: PROMPT } },
      { name: 'books+ships', policy: mergedPolicy(BASE, [await policy('books'), await policy('ships')]) },
    ],
    ...(constant !== undefined && { constant }),
    crossValidation: {
      helps: true,
      routed: scored,
      base: scored,
      bestSingle: { ...scored, option: 'base' },
      unionCeiling: scored,
    },
    parameters: {
      form: 'ridge',
      words: {
        lowercase: true,
        tokenPattern: '[A-Za-z0-9_]+|[^ \\t\\r\\nA-Za-z0-9_]',
        ngrams: [1, 2],
        vocabulary: Object.fromEntries(words.map((word, n) => [word, n])),
      },
      options: [
        option('base', 0.5),
        option('books', 0, 'book'),
        option('ships', 0, 'ship'),
        option('prompted', 0, 'brief'),
        option('books+ships', -1),
      ],
    },
  };
  return keptJson(store, { key: `router/${digest(fitted)}`, producer: 'test', inputs: [] }, () => fitted);
}

/** Listens on loopback, in front of the server at `url`. */
export async function startGateway({
  router,
  ...o
}: Omit<Parameters<typeof startServing>[0], 'served'> & { router: ArtifactRef }) {
  return startServing({ ...o, served: await servedBy({ store: o.store, routers, name: 'demo', router }) });
}

export async function startServing(o: {
  store: ArtifactStore;
  served: Served;
  url: string;
  limits?: Partial<GatewayLimits>;
  apiKey?: string;
  /** Requests at once to the policy server. */
  concurrency?: number;
}) {
  const { store, served, url, limits, apiKey, concurrency = 64 } = o;
  // Merged adapters are already in the store.
  const merge = createMerger({ store, python: 'none' });
  const client = createPolicyClient({ store, merge, url, concurrency });
  const logged: string[] = [];
  const gateway = createGateway({
    ...{ client, store, routers, python: 'python', log: (line: string) => void logged.push(line) },
    served,
    limits: { bodyBytes: 100_000, concurrency: 64, ...limits },
    ...(apiKey !== undefined && { apiKey }),
  });
  const listening = await listen(gateway, { host: '127.0.0.1', port: 0 });
  return {
    ...gateway,
    logged,
    url: listening.url,
    close: async (graceSeconds = 0) => {
      await listening.close(graceSeconds);
      client.close();
    },
  };
}
