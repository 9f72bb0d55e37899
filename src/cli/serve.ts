/** `campaign serve`: serves the routed policy of a finished campaign, or of an exported folder, until it is interrupted. */
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { openStore } from '../store/open-store';
import type { ArtifactStore } from '../store/store';
import type { Campaign } from '../domain/campaign';
import { policyServerUrl } from '../domain/endpoints';
import { createGateway, type GatewayLimits } from '../gateway/app';
import { readServed, ROUTER_FILE } from '../gateway/folder';
import { baselinesOf, routerIn, servedBy, type Served } from '../gateway/served';
import { hashOf, modelOf } from '../policy/base-model';
import { createPolicyClient } from '../policy/client';
import { createMerger } from '../policy/merge';
import { clientSettings } from '../policy/server';
import { pluginPath, withPlugins } from '../plugins';
import type { Registry } from '../registry';
import { note, print } from '../terminal';
import { UserError } from './errors';
import { checkFields } from './input';
import { type CommonOptions, homeOf } from './options';
import { listenAt } from './ports';
import { type Home, makeHome, pythonPath, readJsonFile } from './project';
import { readReport, reported } from './reports';
import { pluginsOf } from './services/allowed';
import { policyServerService } from './services/services';
import { Service } from './services/service';
import { onInterrupt } from './services/supervisor';

export interface ServeOptions extends CommonOptions {
  host: string;
  port: number;
  policyServer?: string;
  model?: string;
  plugin?: string[];
}

const KEY = 'CAMPAIGN_GATEWAY_API_KEY';
/** Time that answers have after the end began. */
const GRACE_SECONDS = 30;
const LIMITS: GatewayLimits = { concurrency: 256, bodyBytes: 8 * 1024 ** 2 };

/** The served policies and the store that holds them. */
interface Source {
  store: ArtifactStore;
  served: Served;
  policyServer?: Campaign['policyServer'] | undefined;
  dtype?: Campaign['training']['dtype'] | undefined;
}

/** Until it is interrupted. @throws UserError */
export async function serve(name: string, options: ServeOptions): Promise<void> {
  const { host, port } = options;
  const key = keyFor(host);
  const home = homeOf(options);
  const named = options.plugin?.map((one) => pluginPath(one, process.cwd()));
  const { routers } = withPlugins(named ?? pluginsOf(home, name));
  const source = await sourceOf(name, home, routers);
  const { store, served } = source;
  const server = await policyServerFor(source, home, options);
  const client = createPolicyClient({
    ...clientSettings(server.url, LIMITS.concurrency),
    store,
    baseId: process.env['CAMPAIGN_BASE_ID'] || undefined,
    merge: createMerger({ store, python: pythonPath() }),
    fingerprint: served.fingerprint,
  });
  try {
    const gateway = createGateway({
      ...{ served, client, limits: LIMITS, log: note, ...(key && { apiKey: key }) },
      ...{ store, routers, python: pythonPath() },
    });
    const listening = await listenAt(gateway, { host, port });
    const interrupted = new Promise<void>((resolve) =>
      onInterrupt({ onFirst: resolve, onSecond: () => server.service?.kill() }),
    );
    const url = `${listening.url}/v1`;
    const names = [...served.policies.keys()];
    void client.reachable().then((isThere) => {
      if (!isThere) note(`warning: no policy server answers at ${server.url}; requests fail until one does`);
    });
    print(
      options.json
        ? JSON.stringify({ url, version: served.version, models: names })
        : `${url} serves ${served.version}: ${names.join(', ')}; Ctrl-C ends it`,
    );
    await Promise.race([interrupted, server.failure]);
    note('ending: what is being answered is answered first; once more Ctrl-C ends all at once');
    await listening.close(GRACE_SECONDS);
  } finally {
    client.close();
    await server.service?.stop();
  }
}

/** Beyond loopback there has to be one. @throws UserError */
function keyFor(host: string): string | undefined {
  const key = process.env[KEY]?.trim();
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (key || isLoopback) return key || undefined;
  const what = isIP(host) ? `--host ${host} is beyond this machine` : `--host ${host} may be beyond this machine`;
  throw new UserError(
    'missing_field',
    KEY,
    `${what}: set ${KEY} to the key that clients must send, or listen on 127.0.0.1`,
  );
}

async function sourceOf(name: string, home: Home, routers: Registry['routers']): Promise<Source> {
  const folder = resolve(name);
  if (!reported(home.root).includes(name) && (existsSync(join(folder, ROUTER_FILE)) || name.includes('/'))) {
    if (!existsSync(folder)) {
      const fix = 'name one that `campaign export` wrote, or a campaign';
      throw new UserError('not_found', 'name', `there is no folder ${folder}; ${fix}`);
    }
    await makeHome(home.root);
    const store = await openStore(home.root);
    return { store, served: await readServed({ store, folder, routers }) };
  }
  const store = await openStore(home.root);
  const report = readReport({ home: home.root, name });
  const { config } = report.campaign;
  const baselines = await baselinesOf(store, name);
  const about = { store, name, routers, baselines, sampling: config?.evaluation.sampling };
  const served = await servedBy({ ...about, router: routerIn(report) });
  return { store, served, policyServer: config?.policyServer, dtype: config?.training.dtype };
}

/** The one that is named, else that of the campaign, else an embedded one that ends with the gateway. `failure` rejects when that is given up. */
async function policyServerFor(source: Source, home: Home, options: ServeOptions) {
  const { served, policyServer, dtype = 'float32' } = source;
  const isOwn = policyServer?.kind === 'vllm' && options.model === undefined;
  const named = options.policyServer ?? (isOwn ? policyServer.url : undefined);
  if (options.policyServer) checkFields(z.object({ '--policy-server': policyServerUrl }), { '--policy-server': named });
  let fail: (error: Error) => void = () => undefined;
  const failure = new Promise<never>((_, reject) => (fail = reject));
  failure.catch(() => undefined);
  if (named) return { url: named, failure };
  const model = modelFolder(served.base, home, options);
  note(`starting a policy server with ${model}`);
  const { maxBatch, threads } = policyServer?.kind === 'embedded' ? policyServer : { maxBatch: 64, threads: 2 };
  const { spec, url } = policyServerService({ model, home, maxBatch, threads, dtype });
  const service = new Service({ ...spec, name: 'gateway-policy-server' }, home.logs, { note, onFailure: fail });
  await makeHome(home.root);
  await service.start();
  return { url: url(), failure, service };
}

/** Finds the folder of a base model by the digests that the home has cached (trainer/model_folder.py). @throws UserError */
function modelFolder(base: string, home: Home, { model }: ServeOptions): string {
  // The server runs in another folder.
  if (model) return resolve(model);
  const file = join(home.root, 'base-ids.json');
  const known = z.record(z.string(), z.tuple([z.unknown(), z.string()])).safeParse(readJsonFile(file)).data;
  const hash = hashOf(modelOf(base));
  const [folder] =
    Object.entries(known ?? {}).find(([path, [, digest]]) => digest.startsWith(hash) && existsSync(path)) ?? [];
  if (folder) return folder;
  throw new UserError(
    'not_found',
    '--model',
    `the base model ${modelOf(base)} is in no folder that this home knows; name its folder with --model, or a server that has it with --policy-server`,
  );
}
