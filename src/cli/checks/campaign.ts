/** What one campaign file needs besides its base model: its target environment, and parts that can work on it. */
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Campaign, Stage } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { isFailure } from '../../domain/failures';
import { kindOf } from '../../domain/kinds';
import { describeSpec, openEnvironment } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { registry as allKinds, type Registry } from '../../registry';
import { messageOf } from '../errors';
import { homeAt, type Home } from '../project';
import { checkTemplate } from './base-model';
import { afterRollouts, failed, passed, warned, type Check } from './check';
import { checkParts, toldBy } from './parts';

/** Opens the target and lets it describe itself and list its tasks, for which it has as long as in the campaign; opens the parts that work on it and asks them whether they can. */
export async function checkTarget(
  campaign: Campaign,
  home: Home = homeAt('.campaigns'),
  { registry = allKinds, until }: { registry?: Registry; until?: Stage | undefined } = {},
): Promise<Check[]> {
  const { target, description } = await describe({ campaign, home, until, kinds: registry.environments });
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
  kinds: Registry['environments'];
}): Promise<{ target: Check; description?: EnvironmentDescription }> {
  const { campaign, home, until, kinds } = o;
  const { target } = campaign;
  let opened: Environment | undefined;
  try {
    const store = openFolderStore(join(home.root, 'artifacts'));
    // The models that play its other parties have checks of their own.
    opened = await openEnvironment(target, { store, partners: {}, kinds });
    const description = await opened.describe();
    const { name, version } = description;
    const wrong = await wrongCounts(campaign, opened, until);
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
async function wrongCounts(campaign: Campaign, opened: Environment, until?: Stage): Promise<string | undefined> {
  const [train, test] = await Promise.all([opened.tasks('train'), opened.tasks('test')]);
  try {
    splitTasks({ campaign, until, train: train.map(({ id }) => id), test: test.map(({ id }) => id) });
    return undefined;
  } catch (error) {
    if (isFailure(error, 'BadInput')) return error.message;
    throw error;
  }
}
