/** The target environment, opened before anything is started: how many of its tasks a campaign takes, what it needs, and the parts that work on it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../store/project-root';
import { openStore } from '../../store/open-store';
import { type CheckItem, Lack, partChecks } from '../../checks/check';
import type { Campaign, Stage } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { kindOf } from '../../domain/kinds';
import type { Prepared } from '../../domain/results';
import { describeSpec, openEnvironment } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { withPlugins } from '../../plugins';
import type { Registry } from '../../registry';
import { templateCheck } from './model';
import { messageOf, UserError } from '../errors';
import type { Home } from '../project';

export function targetChecks(o: {
  campaign: Campaign;
  home: Home;
  registry?: Registry;
  /** The stage that the campaign stops after. */
  until?: Stage | undefined;
}): CheckItem[] {
  const { campaign, home, registry = withPlugins(o.campaign.plugins), until } = o;
  const { target } = campaign;
  const kinds = registry.environments;
  let asked: ReturnType<typeof askTarget> | undefined;
  const ask = () => (asked ??= askTarget({ campaign, home, kinds }));
  /** Undefined where it can't be asked, which a check of its own says. */
  const answer = () => ask().catch(() => undefined);
  const describe = async () => (await answer())?.description;
  return [
    {
      name: 'target environment',
      needs: ['store'],
      fix: 'correct the campaign file, or give the target more tasks',
      async run() {
        const { description, train, test } = await ask().catch((error: unknown) => {
          const remedy = kindOf(kinds, target).remedy?.(target) ?? 'correct the field target of the campaign file';
          throw new Lack(`${describeSpec(target, kinds).label} does not describe itself: ${messageOf(error)}`, remedy);
        });
        splitTasks({ campaign, armKinds: registry.arms, until, train, test });
        return `${description.name} ${description.version}: ${describedText(description)}`;
      },
    },
    {
      name: 'notes of the target',
      async run() {
        const { notes = [] } = (await describe()) ?? {};
        return notes.length > 0 ? { warning: notes.join('; ') } : undefined;
      },
    },
    templateCheck(campaign, describe),
    ...partChecks({ campaign, describe, registry }),
  ];
}

/** One for each thing that must be installed or named; none for a target that needs nothing. `named`: where folders are named, if not in a campaign file. */
export function bridgeChecks(
  { target, plugins }: Pick<Campaign, 'target' | 'plugins'>,
  o: { root?: string; kinds?: Registry['environments']; named?: string } = {},
): CheckItem[] {
  const { root = projectRoot, kinds = withPlugins(plugins).environments, named } = o;
  const { python, folders = [] } = kindOf(kinds, target);
  const items: CheckItem[] = [];
  if (python)
    items.push({
      name: 'bridge',
      fix: `run \`${python.command}\``,
      run() {
        // The stamp is made last: a broken installation has none.
        if (existsSync(join(root, python.environment, '.installed'))) return python.environment;
        throw new Lack(`${python.environment} is not installed`);
      },
    });
  for (const { option, name, holds } of folders) {
    const path = target[option];
    if (typeof path !== 'string') continue;
    items.push({
      name,
      fix: `name a checkout in ${named ?? `target.${option}`}`,
      run() {
        if (existsSync(join(path, holds))) return path;
        throw new Lack(existsSync(path) ? `${path} holds no ${holds}` : `there is no folder ${path}`);
      },
    });
  }
  return items;
}

interface OpenedTarget {
  description: EnvironmentDescription;
  /** Ids of its tasks. */
  train: string[];
  test: string[];
}

/** Opens the target, asks it, and closes it. The models that play its other parties are not asked. */
async function askTarget(o: {
  campaign: Pick<Campaign, 'target'>;
  home: Home;
  kinds: Registry['environments'];
}): Promise<OpenedTarget> {
  const { home, kinds } = o;
  const { target } = o.campaign;
  const store = await openStore(home.root);
  const environment = await openEnvironment(target, { store, partners: {}, kinds });
  try {
    const description = await environment.describe();
    const idsOf = async (split: 'train' | 'test') => (await environment.tasks(split)).map(({ id }) => id);
    const [train, test] = await Promise.all([idsOf('train'), idsOf('test')]);
    return { description, train, test };
  } finally {
    await environment.close().catch(() => undefined);
  }
}

export interface TargetTasks {
  /** As its reports name it. */
  name: string;
  tasks: Prepared['tasks'];
  /** Describes the source of the counts in a line of text. */
  note: string;
  /** Absent where it can't be asked. */
  description?: EnvironmentDescription;
}

/** The file's counts, which are upper limits. */
export const mostTasks = ({ rollouts, validation, router, evaluation }: Campaign): Prepared['tasks'] => ({
  train: rollouts.tasks,
  validation: validation.targetTasks,
  router: router.tasks,
  test: evaluation.tasks,
});

/** Asks the target; one that can't be opened gives the file's own counts. @throws UserError if the file asks for more than it has. */
export async function targetTasks(campaign: Campaign, home: Home): Promise<TargetTasks> {
  const { environments: kinds, arms: armKinds } = withPlugins(campaign.plugins);
  const { label } = describeSpec(campaign.target, kinds);
  let opened: OpenedTarget;
  try {
    opened = await askTarget({ campaign, home, kinds });
  } catch (error) {
    // Wrong files would fail the campaign, too. A missing installation may exist on other machines.
    if (isFailure(error, 'BadInput')) throw new UserError(error.message);
    const note = `the target can't be asked for its tasks (${messageOf(error)}): the counts are the file's upper limits`;
    return { name: label, tasks: mostTasks(campaign), note };
  }
  const { description, train, test } = opened;
  const { name, version } = description;
  try {
    const split = Object.entries(splitTasks({ campaign, armKinds, train, test }));
    const tasks = Object.fromEntries(split.map(([part, ids]) => [part, ids.length])) as Prepared['tasks'];
    const note = `target ${name} ${version}: ${train.length} train and ${test.length} test tasks`;
    return { name, tasks, note, description };
  } catch (error) {
    throw isFailure(error, 'BadInput') ? new UserError(error.message) : error;
  }
}

/** Summarizes the parts of a description that analysts and synthesizers may need. */
export function describedText({ tools, hasReference, rules = [] }: EnvironmentDescription): string {
  const schemas = tools.filter(({ outputSchema }) => outputSchema).length;
  return [
    `${hasReference ? 'reference actions' : 'no reference actions'}`,
    `${rules.length || 'no'} rules`,
    tools.length === 0 ? 'no tools' : `output schemas of ${schemas} of ${tools.length} tools`,
  ].join(', ');
}
