/** What one campaign file needs: its base model, its target environment, and parts that can work on it. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Campaign, SelectionRule } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kind';
import { describeSpec, openEnvironment } from '../../environments/open';
import { registry as allKinds, type Registry } from '../../registry';
import { messageOf } from '../errors';
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

/**
 * Opens the target and lets it describe itself; opens the parts that work on it and asks them whether they can. A target that no
 * environment can be synthesized for is no lack: its arms still train.
 */
export async function checkTarget(
  campaign: Campaign,
  home: Home = homeAt('.campaigns'),
  registry: Registry = allKinds,
): Promise<Check[]> {
  const { analyst, synthesizer, selection: rule } = campaign;
  const { target, description } = await describe(campaign, home, registry.environments);
  return [
    target,
    await checkPart({
      field: 'analyst',
      kind: analyst.kind,
      open: async () => kindOf(registry.analysts, analyst).open(analyst, undefined),
      description,
      rule,
      unsuited: (why) => failed('analyst', why, 'change the field analyst of the campaign file'),
    }),
    await checkPart({
      field: 'synthesizer',
      kind: synthesizer.kind,
      open: async () => kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined),
      description,
      rule,
      unsuited: (why) =>
        passed('synthesizer', `${synthesizer.kind}, but no environment can be synthesized for a capability: ${why}`),
    }),
  ];
}

async function describe(
  { target }: Campaign,
  home: Home,
  kinds: Registry['environments'],
): Promise<{ target: Check; description?: EnvironmentDescription }> {
  let opened: Environment | undefined;
  try {
    const store = openFolderStore(join(home.root, 'artifacts'));
    // The models that play its other parties have checks of their own.
    opened = await within(openEnvironment(target, { store, partners: {}, kinds }));
    const description = await within(opened.describe());
    const { name, version, tools } = description;
    return { target: passed('target environment', `${name} ${version}, ${tools.length} tools`), description };
  } catch (error) {
    const problem = `${describeSpec(target, kinds).label} does not describe itself: ${messageOf(error)}`;
    const fix = kindOf(kinds, target).remedy?.(target) ?? 'correct the field target of the campaign file';
    return { target: failed('target environment', problem, fix) };
  } finally {
    await opened?.close().catch(() => undefined);
  }
}

/** `unsuited`: what it is where the part can't work on the target. Without a description it is opened only. */
async function checkPart(o: {
  field: 'analyst' | 'synthesizer';
  kind: string;
  open: () => Promise<{ unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined }>;
  rule: SelectionRule;
  description: EnvironmentDescription | undefined;
  unsuited: (why: string) => Check;
}): Promise<Check> {
  try {
    const part = await o.open();
    if (!o.description) return passed(o.field, `${o.kind}, not held against the target`);
    const why = part.unsuited?.(o.description, o.rule);
    return why === undefined ? passed(o.field, o.kind) : o.unsuited(why);
  } catch (error) {
    return failed(o.field, messageOf(error), `correct the field ${o.field} of the campaign file`);
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
