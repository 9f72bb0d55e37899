/** Checks of the target environment and of the parts that work on it. The target is opened once, before anything else is started. */
import { openStore } from '../../store/open-store';
import { type CheckItem, MissingRequirement, partChecks } from '../../checks/check';
import type { Campaign, Stage } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import type { Prepared } from '../../domain/results';
import { openEnvironment } from '../../environments/kinds';
import { sizesOf, splitTasks } from '../../environments/split';
import { withPlugins } from '../../plugins';
import { messageOf } from '../errors';
import type { Home } from '../project';

export function targetChecks(o: {
  campaign: Campaign;
  home: Home;
  /** The stage that the campaign stops after. */
  until?: Stage | undefined;
  /** Opens the target, or returns what an earlier call found. */
  ask?: (() => Promise<OpenedTarget>) | undefined;
}): CheckItem[] {
  const { campaign, home, until } = o;
  const registry = withPlugins(campaign.plugins);
  const ask = o.ask ?? openOnce(campaign, home);
  const answer = () => ask().catch(() => undefined);
  const describe = async () => (await answer())?.description;
  return [
    {
      name: 'target environment',
      fix: 'correct the campaign file, or give the target more tasks',
      async run() {
        const { description, train, test } = await ask().catch((error: unknown) => {
          throw new MissingRequirement(
            `the target does not describe itself: ${messageOf(error)}`,
            kindOf(registry.environments, campaign.target).remedy ??
              'correct the field target of the campaign file, or try the target alone with `campaign check FILE --target`',
          );
        });
        splitTasks({ campaign, armKinds: registry.arms, until, train, test });
        return `${description.name} ${description.version}`;
      },
    },
    {
      name: 'notes of the target',
      async run() {
        const { notes = [] } = (await describe()) ?? {};
        return notes.length > 0 ? { warning: notes.join('; ') } : undefined;
      },
    },
    ...partChecks({ campaign, describe, registry }),
  ];
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

/** Returns how many tasks the campaign takes for each part: at most those of its file, which count where the target cannot be opened. */
export function splitOf(campaign: Campaign, opened: OpenedTarget | undefined): Prepared['tasks'] {
  const { rollouts, validation, router, evaluation, plugins } = campaign;
  const wanted = {
    train: rollouts.tasks,
    validation: validation.targetTasks,
    router: router.tasks,
    test: evaluation.tasks,
  };
  if (!opened) return wanted;
  try {
    return sizesOf(splitTasks({ campaign, armKinds: withPlugins(plugins).arms, ...opened }));
  } catch {
    // The check of the target environment reports it.
    return wanted;
  }
}
