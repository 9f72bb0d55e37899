/** Checks of the target environment and of the parts that work on it. The target is opened once, before anything else is started. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../store/project-root';
import { openStore } from '../../store/open-store';
import { type CheckItem, MissingRequirement, partChecks } from '../../checks/check';
import type { Campaign, Stage } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import type { Prepared } from '../../domain/results';
import { describeSpec, openEnvironment } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { withPlugins } from '../../plugins';
import type { Registry } from '../../registry';
import { templateCheck } from './model';
import { messageOf } from '../errors';
import type { Home } from '../project';

export function targetChecks(o: {
  campaign: Campaign;
  home: Home;
  registry?: Registry;
  /** The stage that the campaign stops after. */
  until?: Stage | undefined;
  /** Opens the target, or returns what an earlier call found. */
  ask?: (() => Promise<OpenedTarget>) | undefined;
}): CheckItem[] {
  const { campaign, home, registry = withPlugins(o.campaign.plugins), until } = o;
  const { target } = campaign;
  const kinds = registry.environments;
  const ask = o.ask ?? openOnce(campaign, home);
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
          throw new MissingRequirement(
            `${describeSpec(target, kinds).label} does not describe itself: ${messageOf(error)}`,
            remedy,
          );
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

/** One check for each thing that a target needs installed. */
export function bridgeChecks(
  { target, plugins }: Pick<Campaign, 'target' | 'plugins'>,
  o: { root?: string; kinds?: Registry['environments'] } = {},
): CheckItem[] {
  const { root = projectRoot, kinds = withPlugins(plugins).environments } = o;
  const { python, folders = [] } = kindOf(kinds, target);
  const items: CheckItem[] = [];
  if (python)
    items.push({
      name: 'bridge',
      fix: `run \`${python.command}\``,
      run() {
        // The installation writes this file last.
        if (existsSync(join(root, python.environment, '.installed'))) return python.environment;
        throw new MissingRequirement(`${python.environment} is not installed`);
      },
    });
  for (const { option, name, holds } of folders) {
    const path = target[option];
    if (typeof path !== 'string') continue;
    items.push({
      name,
      fix: `name a checkout in target.${option}`,
      run() {
        if (existsSync(join(path, holds))) return path;
        throw new MissingRequirement(existsSync(path) ? `${path} holds no ${holds}` : `there is no folder ${path}`);
      },
    });
  }
  return items;
}

export interface OpenedTarget {
  description: EnvironmentDescription;
  /** Ids of its tasks. */
  train: string[];
  test: string[];
}

/** Returns a function that opens the target, asks it and closes it when it is first called. No simulated user or judge is asked. */
export function openOnce({ target, plugins }: Pick<Campaign, 'target' | 'plugins'>, home: Home) {
  const open = async (): Promise<OpenedTarget> => {
    const store = await openStore(home.root);
    const kinds = withPlugins(plugins).environments;
    const environment = await openEnvironment(target, { store, partners: {}, kinds });
    try {
      const description = await environment.describe();
      const idsOf = async (split: 'train' | 'test') => (await environment.tasks(split)).map(({ id }) => id);
      const [train, test] = await Promise.all([idsOf('train'), idsOf('test')]);
      return { description, train, test };
    } finally {
      await environment.close().catch(() => undefined);
    }
  };
  let opened: Promise<OpenedTarget> | undefined;
  return () => (opened ??= open());
}

export interface TargetTasks {
  /** The counts of the campaign file, which are upper limits. */
  wanted: Prepared['tasks'];
  /** The counts that a campaign takes; those of the file where the target cannot be opened. */
  taken: Prepared['tasks'];
  /** The counts of the target; absent where it cannot be opened. */
  available?: { train: number; test: number };
}

export function splitOf(campaign: Campaign, opened: OpenedTarget | undefined): TargetTasks {
  const { rollouts, validation, router, evaluation, plugins } = campaign;
  const wanted = {
    train: rollouts.tasks,
    validation: validation.targetTasks,
    router: router.tasks,
    test: evaluation.tasks,
  };
  if (!opened) return { wanted, taken: wanted };
  const { train, test } = opened;
  const available = { train: train.length, test: test.length };
  try {
    const split = Object.entries(splitTasks({ campaign, armKinds: withPlugins(plugins).arms, train, test }));
    const taken = Object.fromEntries(split.map(([part, ids]) => [part, ids.length])) as Prepared['tasks'];
    return { wanted, taken, available };
  } catch {
    // The check of the target environment reports it.
    const ofTrain = (count: number) => Math.min(count, train.length);
    const taken = {
      train: ofTrain(wanted.train),
      validation: ofTrain(wanted.validation),
      router: ofTrain(wanted.router),
      test: Math.min(wanted.test, test.length),
    };
    return { wanted, taken, available };
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
