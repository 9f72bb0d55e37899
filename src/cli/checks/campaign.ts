/** What one campaign file needs: its base model, its target environment, its policy server. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import type { Environment } from '../../domain/environment';
import { messageOf } from '../errors';
import { lazy } from '../lazy';
import { homeAt, type Home } from '../project';
import { failed, passed, type Check } from './check';

const ANSWER_SECONDS = 30;

export function checkModel({ baseModel }: Campaign): Check {
  const { path } = baseModel;
  const fix = 'make one with `make base-model`, or correct baseModel.path in the campaign file';
  if (!existsSync(path)) return failed('base model', `there is no folder ${path}`, fix);
  const files = readdirSync(path);
  const missing = [
    ...(files.includes('config.json') ? [] : ['config.json']),
    ...(files.some((file) => /\.(safetensors|bin)$/.test(file)) ? [] : ['weights (*.safetensors)']),
    ...(files.some((file) => /^tokenizer/.test(file)) ? [] : ['a tokenizer']),
  ];
  return missing.length > 0
    ? failed('base model', `${path} lacks ${missing.join(', ')}`, fix)
    : passed('base model', path);
}

/** Opens the target, lets it describe itself and closes it. */
export async function checkTarget({ target }: Campaign, home: Home = homeAt('.campaigns')): Promise<Check> {
  const label =
    target.kind === 'process' ? target.command.join(' ') : target.kind === 'builtin' ? target.name : 'sandbox';
  const fix =
    target.kind === 'process'
      ? `run it by hand, then \`campaign env check -- ${label}\``
      : 'correct the field target of the campaign file';
  let opened: Environment | undefined;
  try {
    const { openEnvironment } = lazy.environments();
    const store = lazy.folderStore().openFolderStore(join(home.root, 'artifacts'));
    const environment = await within(openEnvironment(target, { store }));
    opened = environment;
    const { name, version, tools } = await within(environment.describe());
    return passed('target environment', `${name} ${version}, ${tools.length} tools`);
  } catch (error) {
    return failed('target environment', `${label} does not describe itself: ${messageOf(error)}`, fix);
  } finally {
    await opened?.close().catch(() => undefined);
  }
}

/** Whether a policy server that is not ours answers. */
export async function checkPolicyServer({ policyServer }: Campaign): Promise<Check> {
  if (policyServer.kind === 'embedded') return passed('policy server', 'embedded, started with the campaign');
  const { url } = policyServer;
  try {
    const { ok, status } = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(5000) });
    if (!ok) throw new Error(`GET /health answers ${status}`);
    return passed('policy server', url);
  } catch (error) {
    const cause = error instanceof Error && error.cause ? messageOf(error.cause) : messageOf(error);
    return failed('policy server', `${url}: ${cause}`, 'start it, or correct policyServer.url in the campaign file');
  }
}

async function within<T>(work: T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_SECONDS} s`)), ANSWER_SECONDS * 1000);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
