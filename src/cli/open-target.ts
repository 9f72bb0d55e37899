/** A campaign's target, opened before anything is started, and how many of its tasks the campaign will take. */
import { join } from 'node:path';
import { splitTasks, type Plan } from '../environments/split';
import type { Campaign } from '../domain/campaign';
import type { Environment, EnvironmentDescription } from '../domain/environment';
import { isFailure } from '../domain/failures';
import type { Prepared } from '../domain/results';
import type { EnvironmentSpec } from '../domain/kinds';
import { registry, type Registry } from '../registry';
import { messageOf, UserError } from './errors';
import { openFolderStore } from '../artifacts/folder-store';
import { describeSpec, openEnvironment } from '../environments/open';
import type { Home } from './project';

interface TaskIds {
  train: string[];
  test: string[];
}

export async function taskIds(environment: Environment): Promise<TaskIds> {
  const [train, test] = await Promise.all([environment.tasks('train'), environment.tasks('test')]);
  return { train: train.map(({ id }) => id), test: test.map(({ id }) => id) };
}

/** Opens a target before any campaign is started, and closes it when the work has ended. The models that play its other parties are not asked. */
export async function withTarget<Result>(
  o: { target: EnvironmentSpec; home: Home; kinds?: Registry['environments'] },
  work: (environment: Environment) => Promise<Result>,
): Promise<Result> {
  const { target, home, kinds = registry.environments } = o;
  const store = openFolderStore(join(home.root, 'artifacts'));
  const environment = await openEnvironment(target, { store, partners: {}, kinds });
  try {
    return await work(environment);
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

/** Asks the target; one that can't be opened gives the file's own counts, which are upper limits. @throws UserError if the file asks for more than it has. */
export async function targetTasks(campaign: Campaign, home: Home): Promise<TargetTasks> {
  const { target } = campaign;
  const { label, isPublished } = describeSpec(target);
  let description: EnvironmentDescription | undefined;
  let ids: TaskIds;
  try {
    ids = await withTarget({ target, home }, async (environment) => {
      description = await environment.describe();
      return taskIds(environment);
    });
  } catch (error) {
    const { rollouts, validation, router, evaluation } = campaign;
    return {
      name: label,
      tasks: {
        train: rollouts.tasks,
        validation: validation.targetTasks,
        router: router.tasks,
        test: evaluation.tasks,
      },
      note: `the target can't be asked for its tasks (${messageOf(error)}): the counts are the file's upper limits`,
      ...(description && { description }),
      isPublished,
    };
  }
  const { name, version } = description!;
  const plan = planOf(campaign, ids);
  const tasks = {
    train: plan.train.length,
    validation: plan.validation.length,
    router: plan.router.length,
    test: plan.test.length,
  };
  const note = `target ${name} ${version}: ${ids.train.length} train and ${ids.test.length} test tasks`;
  return { name, tasks, note, description: description!, isPublished };
}

function planOf(campaign: Campaign, ids: TaskIds): Plan {
  try {
    return splitTasks({ campaign, armKinds: registry.arms, ...ids });
  } catch (error) {
    if (isFailure(error, 'BadInput')) throw new UserError(error.message);
    throw error;
  }
}
