/** A campaign's target, opened before anything is started, and how many of its tasks the campaign will take. */
import { openStore } from '../artifacts/open-store';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentDescription } from '../domain/environment';
import { isFailure } from '../domain/failures';
import type { Prepared } from '../domain/results';
import { describeSpec, openEnvironment, openingsOf } from '../environments/open';
import { splitTasks } from '../environments/split';
import { registry, type Registry } from '../registry';
import { messageOf, UserError } from './errors';
import type { Home } from './project';

interface OpenedTarget {
  description: EnvironmentDescription;
  /** Ids of its tasks. */
  train: string[];
  test: string[];
  /** What it shows a policy before the first answer; absent unless it was asked for, and where it can't be had. */
  texts?: readonly string[] | undefined;
}

/** Opens the target, asks it, and closes it. The models that play its other parties are not asked. */
export async function askTarget(o: {
  campaign: Pick<Campaign, 'target' | 'seed'>;
  home: Home;
  kinds?: Registry['environments'];
  withTexts?: boolean;
}): Promise<OpenedTarget> {
  const { campaign, home, kinds = registry.environments, withTexts = false } = o;
  const { target, seed } = campaign;
  const store = await openStore(home.root);
  const environment = await openEnvironment(target, { store, partners: {}, kinds });
  try {
    const description = await environment.describe();
    const idsOf = async (split: 'train' | 'test') => (await environment.tasks(split)).map(({ id }) => id);
    const [train, test] = await Promise.all([idsOf('train'), idsOf('test')]);
    if (!withTexts) return { description, train, test };
    // Where a model plays the user there is nobody here to say its first words: the written policy has to do.
    const openings = await openingsOf({ environment, tasks: train, seed })
      .catch(() => openingsOf({ environment, tasks: [], seed }))
      .catch(() => undefined);
    return { description, train, test, texts: openings?.texts };
  } finally {
    await environment.close().catch(() => undefined);
  }
}

export interface TargetTasks {
  /** As its reports name it. */
  name: string;
  tasks: Prepared['tasks'];
  /** What the counts rest on, as a line of text. */
  note: string;
  /** Whether there are published figures on the target. */
  isPublished: boolean;
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
  const { label, isPublished } = describeSpec(campaign.target);
  let opened: OpenedTarget;
  try {
    opened = await askTarget({ campaign, home });
  } catch (error) {
    const note = `the target can't be asked for its tasks (${messageOf(error)}): the counts are the file's upper limits`;
    return { name: label, tasks: mostTasks(campaign), note, isPublished };
  }
  const { description, train, test } = opened;
  const { name, version } = description;
  try {
    const split = Object.entries(splitTasks({ campaign, armKinds: registry.arms, train, test }));
    const tasks = Object.fromEntries(split.map(([part, ids]) => [part, ids.length])) as Prepared['tasks'];
    const note = `target ${name} ${version}: ${train.length} train and ${test.length} test tasks`;
    return { name, tasks, note, description, isPublished };
  } catch (error) {
    throw isFailure(error, 'BadInput') ? new UserError(error.message) : error;
  }
}

/** What a target tells of itself that analysts and synthesizers may need. */
export function describedText({ tools, hasReference, rules = [] }: EnvironmentDescription): string {
  const schemas = tools.filter(({ outputSchema }) => outputSchema).length;
  return [
    `${hasReference ? 'reference actions' : 'no reference actions'}`,
    `${rules.length || 'no'} rules`,
    tools.length === 0 ? 'no tools' : `output schemas of ${schemas} of ${tools.length} tools`,
  ].join(', ');
}
