/**
 * The target environment and the parts that work on it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import { takeConversations } from '../../conversations/read';
import type { Campaign, SelectionRule, Stage } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { describeSpec, openEnvironment } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { type Registry, registry as allKinds } from '../../registry';
import { moduleFiles } from '../../sandbox/source';
import { messageOf } from '../errors';
import { type Home, homeAt, projectRoot } from '../project';
import { checkTemplate } from './base-model';
import { afterRollouts, type Check, failed, passed, warned } from './check';

/** Opens the target and lets it describe itself and list its tasks, for which it has as long as in the campaign; opens the parts that work on it and asks them whether they can. */
export async function checkTarget(
  campaign: Campaign,
  home: Home = homeAt('.campaigns'),
  { registry = allKinds, until }: { registry?: Registry; until?: Stage | undefined } = {},
): Promise<Check[]> {
  const { target, description } = await describe({ campaign, home, until, registry });
  const template = description && checkTemplate(campaign, description);
  const notes = (description?.notes ?? []).map((note) => warned('target environment', note));
  return [
    target,
    ...notes,
    ...(template ? [template] : []),
    ...afterRollouts(await checkParts({ campaign, description, registry }), until),
  ];
}

async function describe(o: {
  campaign: Campaign;
  home: Home;
  /** The stage that it stops after. */
  until: Stage | undefined;
  registry: Registry;
}): Promise<{ target: Check; description?: EnvironmentDescription }> {
  const { campaign, home, until, registry } = o;
  const kinds = registry.environments;
  const { target } = campaign;
  let opened: Environment | undefined;
  try {
    const store = openFolderStore(join(home.root, 'artifacts'));
    // The models that play its other parties have checks of their own.
    opened = await openEnvironment(target, { store, partners: {}, kinds });
    const description = await opened.describe();
    const { name, version } = description;
    const wrong = await wrongCounts(campaign, opened, { registry, until });
    if (wrong !== undefined)
      return {
        target: failed('target environment', wrong, 'correct the campaign file, or give the target more tasks'),
        description,
      };
    return { target: passed('target environment', `${name} ${version}: ${toldBy(description)}`), description };
  } catch (error) {
    const problem = `${describeSpec(target, kinds).label} does not describe itself: ${messageOf(error)}`;
    const fix = kindOf(kinds, target).remedy?.(target) ?? 'correct the field target of the campaign file';
    return { target: failed('target environment', problem, fix) };
  } finally {
    await opened?.close().catch(() => undefined);
  }
}

/** What the campaign asks for and the target's tasks don't give. */
async function wrongCounts(
  campaign: Campaign,
  opened: Environment,
  { registry, until }: { registry: Registry; until: Stage | undefined },
): Promise<string | undefined> {
  const [train, test] = await Promise.all([opened.tasks('train'), opened.tasks('test')]);
  try {
    splitTasks({
      campaign,
      armKinds: registry.arms,
      until,
      train: train.map(({ id }) => id),
      test: test.map(({ id }) => id),
    });
    return undefined;
  } catch (error) {
    if (isFailure(error, 'BadInput')) return error.message;
    throw error;
  }
}

/** One check per thing; none for a target that needs nothing. `named`: where the folders are named, if not in a campaign file. */
export function checkBridge(
  { target }: Pick<Campaign, 'target'>,
  {
    root = projectRoot,
    kinds = environments,
    named,
  }: { root?: string; kinds?: typeof environments; named?: string } = {},
): Check[] {
  const { python, folders = [] } = kindOf(kinds, target);
  return [
    ...(python ? [installed({ root, ...python })] : []),
    ...folders.flatMap(({ option, name, holds }) => {
      const path = target[option];
      return typeof path === 'string' ? [folder({ name, field: named ?? `target.${option}`, path, holds })] : [];
    }),
  ];
}

function installed({ root, environment, command }: { root: string; environment: string; command: string }): Check {
  // The stamp is made last: a broken installation has none.
  return existsSync(join(root, environment, '.installed'))
    ? passed('bridge', environment)
    : failed('bridge', `${environment} is not installed`, `run \`${command}\``);
}

function folder({ name, field, path, holds }: { name: string; field: string; path: string; holds: string }): Check {
  if (existsSync(join(path, holds))) return passed(name, path);
  const missing = existsSync(path) ? `${path} holds no ${holds}` : `there is no folder ${path}`;
  return failed(name, missing, `name a checkout in ${field}`);
}

/** A target that no environment can be synthesized for is no lack: its arms still train. */
export async function checkParts(o: {
  campaign: Campaign;
  description: EnvironmentDescription | undefined;
  registry: Registry;
}): Promise<Check[]> {
  const { campaign, description, registry } = o;
  const { analyst, synthesizer, selection: rule } = campaign;
  return [
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
        warned('synthesizer', `capabilities will end not_synthesized and get no adapter; ${synthesizer.kind}: ${why}`),
    }),
    ...(await checkArms(campaign, registry)),
  ];
}

/** What arms read from the disk. */
async function checkArms({ arms }: Campaign, registry: Registry): Promise<Check[]> {
  const read = arms.flatMap((spec) => kindOf(registry.arms, spec).reads?.(spec) ?? []);
  return Promise.all(
    read.map(async (what) => {
      try {
        const found =
          what.holds === 'modules'
            ? `${(await moduleFiles(what.path)).length} modules`
            : `${(await takeConversations({ file: what.path, minReward: what.minReward })).length} conversations`;
        return passed(what.field, `${found} in ${what.path}`);
      } catch (error) {
        return failed(what.field, messageOf(error), `correct ${what.field} in the campaign file, or what it names`);
      }
    }),
  );
}

async function checkPart(o: {
  field: 'analyst' | 'synthesizer';
  kind: string;
  open: () => Promise<{ unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined }>;
  rule: SelectionRule;
  description: EnvironmentDescription | undefined;
  /** What it is where the part can't work on the target. */
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

/** What a target tells of itself that analysts and synthesizers may need. */
export function toldBy({ tools, hasReference, rules = [] }: EnvironmentDescription): string {
  const schemas = tools.filter(({ outputSchema }) => outputSchema).length;
  return [
    `${hasReference ? 'reference actions' : 'no reference actions'}`,
    `${rules.length || 'no'} rules`,
    tools.length === 0 ? 'no tools' : `output schemas of ${schemas} of ${tools.length} tools`,
  ].join(', ');
}
