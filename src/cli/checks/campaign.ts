/** What one campaign file needs: its base model and its target environment. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import type { Environment } from '../../domain/environment';
import { messageOf } from '../errors';
import { lazy } from '../lazy';
import { homeAt, type Home } from '../project';
import { failed, passed, type Check } from './check';

const ANSWER_SECONDS = 30;

export function checkModel({ baseModel, policyServer }: Campaign): Check {
  const { path } = baseModel;
  const get =
    policyServer.kind === 'vllm'
      ? 'put the folder of the model that vLLM serves there'
      : 'make one with `make base-model`';
  const fix = `${get}, or correct baseModel.path in the campaign file`;
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
export async function checkTarget({ target, analyst }: Campaign, home: Home = homeAt('.campaigns')): Promise<Check> {
  const label =
    target.kind === 'process' ? target.command.join(' ') : target.kind === 'builtin' ? target.name : target.kind;
  const fix =
    target.kind === 'process'
      ? `run it by hand, then \`campaign env check -- ${label}\``
      : 'correct the field target of the campaign file';
  let opened: Environment | undefined;
  try {
    const { openEnvironment } = lazy.environments();
    const store = lazy.folderStore().openFolderStore(join(home.root, 'artifacts'));
    // The models that play its other parties have checks of their own.
    const environment = await within(openEnvironment(target, { store, partners: {} }));
    opened = environment;
    const { name, version, tools, hasReference, rules } = await within(environment.describe());
    const found = `${name} ${version}, ${tools.length} tools`;
    if (analyst.kind === 'rules' && !hasReference)
      return failed(
        'target environment',
        `${found}, but it tells no reference actions, which analyst.kind "rules" needs`,
        'use a target that tells them: this version has no other analyst',
      );
    const synthesis = rules ? '' : '; it describes no rules, so no environment can be synthesized for a capability';
    return passed('target environment', found + synthesis);
  } catch (error) {
    return failed('target environment', `${label} does not describe itself: ${messageOf(error)}`, fix);
  } finally {
    await opened?.close().catch(() => undefined);
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
