/**
 * `campaign serve`: serves the routed policy of a finished campaign, or of an exported folder, until it is interrupted. A newer report of the
 * campaign, or a newer export into the folder, is taken up while it serves.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { openStore } from '../store/open-store';
import type { ArtifactStore } from '../store/store';
import type { Campaign } from '../domain/campaign';
import { policyServerUrl } from '../domain/endpoints';
import { createGateway, type GatewayLimits } from '../gateway/app';
import { readServed, ROUTER_FILE } from '../gateway/folder';
import { recordedOf, routerIn, servedBy, type Served } from '../gateway/served';
import { hashOf, modelOf } from '../policy/base-model';
import { createPolicyClient } from '../policy/client';
import { createMerger } from '../policy/merge';
import { pluginPath, withPlugins } from '../plugins';
import type { Registry } from '../registry';
import { note, print } from '../terminal';
import { InputError, invalidOption, messageOf, UserError } from './errors';
import { parseFields } from './input';
import { type CommonOptions, homeOf } from './options';
import { listenAt, requireFree } from './ports';
import { type Home, makeHome, pythonPath } from './project';
import { readReport, reported, requireReported } from './reports';
import { pluginsOf } from './run/plugins';
import { policyServerService } from './run/services';
import { Service } from './run/service';
import { onInterrupt } from './run/supervisor';

export interface ServeOptions extends CommonOptions {
  host: string;
  port: number;
  policyServer?: string;
  model?: string;
  plugin: string[];
  concurrency: number;
}

const KEY = 'CAMPAIGN_GATEWAY_API_KEY';
const LOOK_MS = 2_000;
/** The longest time to an answer, and of answers after the end began. */
const [ANSWER_SECONDS, GRACE_SECONDS] = [300, 30];
const BODY_BYTES = 8 * 1024 ** 2;

/** Where what is served comes from. */
interface Source {
  store: ArtifactStore;
  /** Changes when there is something newer. */
  file: string;
  read: () => Promise<Served>;
  policyServer?: Campaign['policyServer'];
}

/** Until it is interrupted. @throws UserError */
export async function serve(name: string | undefined, options: ServeOptions): Promise<void> {
  if (name === undefined)
    throw new InputError({
      code: 'missing_field',
      field: 'name',
      fix: "name a campaign or an exported folder; `campaign ui` starts Temporal's UI",
    });
  const { host, port, concurrency } = options;
  const key = keyFor(host);
  const home = homeOf(options);
  const given = options.plugin.map((named) => pluginPath(named, process.cwd()));
  const { routers } = withPlugins([...new Set([...pluginsOf(home, name), ...given])]);
  const source = await sourceOf(name, home, routers);
  const served = await source.read();
  // A policy server takes a while to start.
  await requireFree({ host, port });
  const server = await policyServerFor({ served, source, home, options, note });
  const { store } = source;
  const policyKey = process.env['POLICY_SERVER_API_KEY'];
  const client = createPolicyClient({
    ...{ store, url: server.url, concurrency, baseId: process.env['CAMPAIGN_BASE_ID'] || undefined },
    ...{ merge: createMerger({ store, python: pythonPath() }), fingerprint: served.fingerprint },
    requestTimeoutMs: ANSWER_SECONDS * 1000,
    ...(policyKey && { apiKey: policyKey }),
  });
  try {
    const limits: GatewayLimits = { concurrency, seconds: ANSWER_SECONDS, bodyBytes: BODY_BYTES };
    const gateway = createGateway({
      ...{ served, client, limits, log: note, ...(key && { apiKey: key }) },
      ...{ store, routers, python: pythonPath() },
    });
    const listening = await listenAt(gateway, { host, port });
    const interrupted = new Promise<void>((resolve) =>
      onInterrupt({ onFirst: resolve, onSecond: () => server.kill() }),
    );
    const watching = watch(source, served, (newer) => gateway.reload(newer), note);
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
    await Promise.race([interrupted, server.failure]).finally(() => clearInterval(watching));
    note('ending: what is being answered is answered first; once more Ctrl-C ends all at once');
    await listening.close(GRACE_SECONDS);
  } finally {
    client.close();
    await server.stop();
  }
}

/** Beyond loopback there has to be one. @throws UserError */
function keyFor(host: string): string | undefined {
  const key = process.env[KEY]?.trim();
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (key || isLoopback) return key || undefined;
  const what = isIP(host) ? `--host ${host} is beyond this machine` : `--host ${host} may be beyond this machine`;
  throw new UserError(`${what}: set ${KEY} to the key that clients must send, or listen on 127.0.0.1`);
}

async function sourceOf(name: string, home: Home, routers: Registry['routers']): Promise<Source> {
  const folder = resolve(name);
  const file = join(folder, ROUTER_FILE);
  if (!reported(home.root).includes(name) && (existsSync(file) || name.includes('/'))) {
    if (!existsSync(folder))
      throw new UserError(`there is no folder ${folder}; name one that \`campaign export\` wrote, or a campaign`);
    await makeHome(home.root);
    const store = await openStore(home.root);
    return { store, file, read: () => readServed({ store, folder, routers }) };
  }
  requireReported({ home: home.root, name });
  const store = await openStore(home.root);
  const read = async () => {
    const router = routerIn(readReport({ home: home.root, name }));
    const { baselines, sampling } = await recordedOf(store, name);
    return servedBy({ store, name, router, routers, baselines, sampling });
  };
  const { policyServer } = await recordedOf(store, name);
  return { store, file: join(home.root, name, 'report.json'), read, ...(policyServer && { policyServer }) };
}

/** Takes up what is newer and of the same base model; anything else is said, and what is served goes on. */
function watch(source: Source, first: Served, reload: (newer: Served) => void, note: (text: string) => void) {
  const changed = () => statSync(source.file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  let [seen, version] = [changed(), first.version];
  const look = async () => {
    const now = changed();
    if (now === 0 || now === seen) return;
    const newer = await source.read();
    seen = now;
    if (newer.version === version) return;
    if (modelOf(newer.base) !== modelOf(first.base))
      throw new Error(`${newer.version} is of base model ${newer.base}; serve it again for that one`);
    version = newer.version;
    reload(newer);
    note(`serves ${version} from now on; conversations that have begun keep their policy`);
  };
  let told = '';
  const failed = (error: unknown) => {
    const text = `goes on with ${version}: ${messageOf(error)}`;
    if (text !== told) note((told = text));
  };
  return setInterval(() => void look().catch(failed), LOOK_MS).unref();
}

interface PolicyServerHandle {
  url: string;
  /** Rejects when it is given up. */
  failure: Promise<never>;
  stop: () => Promise<void>;
  kill: () => void;
}

/** The one that is named, else that of the campaign, else an embedded one that ends with the gateway. */
async function policyServerFor(o: {
  served: Served;
  source: Source;
  home: Home;
  options: ServeOptions;
  note: (text: string) => void;
}): Promise<PolicyServerHandle> {
  const { served, source, home, options, note } = o;
  const { policyServer } = source;
  const isOwn = policyServer?.kind === 'vllm' && options.model === undefined;
  const named = namedServer(options) ?? (isOwn ? policyServer.url : undefined);
  const never = new Promise<never>(() => undefined);
  if (named) return { url: named, failure: never, stop: async () => undefined, kill: () => undefined };
  const model = modelFolder(served.base, home, options);
  note(`starting a policy server with ${model}`);
  const { maxBatch, threads } = policyServer?.kind === 'embedded' ? policyServer : { maxBatch: 64, threads: 2 };
  const { spec, url } = policyServerService({ model, home, maxBatch, threads });
  let fail: (error: Error) => void = () => undefined;
  const failure = new Promise<never>((_, reject) => (fail = reject));
  failure.catch(() => undefined);
  const service = new Service({ ...spec, name: 'gateway-policy-server' }, home.logs, {
    note,
    onFailure: fail,
  });
  await makeHome(home.root);
  await service.start();
  return { url: url(), failure, stop: () => service.stop(), kill: () => service.kill() };
}

/** @throws UserError for what is no URL, and for a model beside it, which only a server that is started takes. */
function namedServer({ policyServer, model }: ServeOptions): string | undefined {
  const given = { '--policy-server': policyServer, POLICY_SERVER_URL: process.env['POLICY_SERVER_URL'] };
  const [[name, url] = ['']] = Object.entries(given).filter((one) => one[1]);
  if (!url) return undefined;
  const schema = z.object({ [name]: policyServerUrl });
  const [problem] = parseFields(schema, { [name]: url }).problems ?? [];
  if (problem) throw new InputError(problem);
  if (model === undefined) return url;
  throw invalidOption('--model', model, `${name} names a server that already runs; leave one of them out`);
}

/** By what the home has kept of folders (trainer/model_folder.py). @throws UserError */
function modelFolder(base: string, home: Home, { model }: ServeOptions): string {
  const given = model ?? process.env['CAMPAIGN_MODEL'];
  // The server runs in another folder.
  if (given) return resolve(given);
  const file = join(home.root, 'base-ids.json');
  const known = existsSync(file)
    ? z.record(z.string(), z.tuple([z.unknown(), z.string()])).safeParse(JSON.parse(readFileSync(file, 'utf8'))).data
    : undefined;
  const hash = hashOf(modelOf(base));
  const [folder] =
    Object.entries(known ?? {}).find(([path, [, digest]]) => digest.startsWith(hash) && existsSync(path)) ?? [];
  if (folder) return folder;
  throw new UserError(
    `the base model ${modelOf(base)} is in no folder that this home knows; name its folder with --model, or a server that has it with --policy-server`,
  );
}
