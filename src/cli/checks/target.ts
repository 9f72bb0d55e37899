/**
 * The target environment and the parts that work on it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Campaign, Stage } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { describeSpec } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { type Registry, registry as allKinds } from '../../registry';
import { messageOf } from '../errors';
import { taskIds, withTarget } from '../open-target';
import { type Home, homeAt, projectRoot } from '../project';
import { checkTemplate } from './base-model';
import { afterRollouts, type Check, failed, passed, warned } from '../../checks/check';
import { partChecks } from '../../checks/parts';

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
  const { target } = campaign;
  const kinds = registry.environments;
  const name = 'target environment';
  try {
    return await withTarget({ target, home, kinds }, async (environment) => {
      const description = await environment.describe();
      const wrong = await wrongCounts(campaign, environment, { registry, until });
      const check =
        wrong === undefined
          ? passed(name, `${description.name} ${description.version}: ${toldBy(description)}`)
          : failed(name, wrong, 'correct the campaign file, or give the target more tasks');
      return { target: check, description };
    });
  } catch (error) {
    const problem = `${describeSpec(target, kinds).label} does not describe itself: ${messageOf(error)}`;
    const fix = kindOf(kinds, target).remedy?.(target) ?? 'correct the field target of the campaign file';
    return { target: failed(name, problem, fix) };
  }
}

/** What the campaign asks for and the target's tasks don't give. */
async function wrongCounts(
  campaign: Campaign,
  opened: Environment,
  { registry, until }: { registry: Registry; until: Stage | undefined },
): Promise<string | undefined> {
  try {
    splitTasks({ campaign, armKinds: registry.arms, until, ...(await taskIds(opened)) });
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

/** What can't be opened or read is a check that failed. */
export const checkParts = (o: Parameters<typeof partChecks>[0]): Promise<Check[]> =>
  Promise.all(
    partChecks(o).map(({ field, fix, run }) => run().catch((error: unknown) => failed(field, messageOf(error), fix))),
  );

/** What a target tells of itself that analysts and synthesizers may need. */
export function toldBy({ tools, hasReference, rules = [] }: EnvironmentDescription): string {
  const schemas = tools.filter(({ outputSchema }) => outputSchema).length;
  return [
    `${hasReference ? 'reference actions' : 'no reference actions'}`,
    `${rules.length || 'no'} rules`,
    tools.length === 0 ? 'no tools' : `output schemas of ${schemas} of ${tools.length} tools`,
  ].join(', ');
}
