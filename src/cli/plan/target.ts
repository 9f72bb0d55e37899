/** How many tasks a campaign will take from its target. Invariant: the split is the campaign's own (activities/prepare.ts). */
import { join } from 'node:path';
import { splitTasks, type Plan } from '../../environments/split';
import type { Campaign } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import type { Prepared } from '../../domain/results';
import { registry } from '../../registry';
import { messageOf, UserError } from '../errors';
import { openFolderStore } from '../../artifacts/folder-store';
import { describeSpec, openEnvironment } from '../../environments/open';
import type { Home } from '../project';

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
  const store = openFolderStore(join(home.root, 'artifacts'));
  let description: EnvironmentDescription | undefined;
  let ids: { train: string[]; test: string[] };
  try {
    const environment = await openEnvironment(target, { store, partners: {} });
    try {
      description = await environment.describe();
      const [train, test] = await Promise.all([environment.tasks('train'), environment.tasks('test')]);
      ids = { train: train.map(({ id }) => id), test: test.map(({ id }) => id) };
    } finally {
      await environment.close();
    }
  } catch (error) {
    const { rollouts, validation, router, evaluation } = campaign;
    return {
      name: label,
      tasks: {
        discovery: rollouts.tasks,
        heldOut: validation.targetTasks,
        router: router.tasks,
        evaluation: evaluation.tasks,
      },
      note: `the target can't be asked for its tasks (${messageOf(error)}): the counts are the file's upper limits`,
      ...(description && { description }),
      isPublished,
    };
  }
  const { name, version } = description;
  const plan = planOf(campaign, ids);
  const tasks = {
    discovery: plan.discovery.length,
    heldOut: plan.heldOut.length,
    router: plan.router.length,
    evaluation: plan.evaluation.length,
  };
  const note = `target ${name} ${version}: ${ids.train.length} train and ${ids.test.length} test tasks`;
  return { name, tasks, note, description, isPublished };
}

function planOf(campaign: Campaign, ids: { train: string[]; test: string[] }): Plan {
  try {
    return splitTasks({ campaign, armKinds: registry.arms, ...ids });
  } catch (error) {
    if (isFailure(error, 'BadInput')) throw new UserError(error.message);
    throw error;
  }
}
