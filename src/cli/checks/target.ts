/** The target environment, what it needs to be opened, and the parts that work on it. It is opened once for all of them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../artifacts/given';
import { type CheckItem, Lack, partChecks } from '../../checks/check';
import type { Campaign, Stage } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { describeSpec } from '../../environments/open';
import { splitTasks } from '../../environments/split';
import { type Registry, registry as allKinds } from '../../registry';
import { messageOf } from '../errors';
import { askTarget, describedText } from '../open-target';
import type { Home } from '../project';
import { shownChecks } from './model';

export function targetChecks(o: {
  campaign: Campaign;
  home: Home;
  registry?: Registry;
  /** The stage that the campaign stops after. */
  until?: Stage | undefined;
  /** Whether the base's tokenizer is asked about the target's texts. */
  asksTokenizer?: boolean;
  python?: string;
}): CheckItem[] {
  const { campaign, home, registry = allKinds, until, asksTokenizer = false, python } = o;
  const { target } = campaign;
  const kinds = registry.environments;
  let asked: ReturnType<typeof askTarget> | undefined;
  const ask = () => (asked ??= askTarget({ campaign, home, kinds, withTexts: asksTokenizer }));
  /** Undefined where it can't be asked, which a check of its own says. */
  const answer = () => ask().catch(() => undefined);
  const describe = async () => (await answer())?.description;
  const texts = asksTokenizer ? async () => (await answer())?.texts : undefined;
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
    ...shownChecks({ campaign, describe, texts, python }),
    ...partChecks({ campaign, describe, registry }),
  ];
}

/** One for each thing that must be installed or named; none for a target that needs nothing. `named`: where folders are named, if not in a campaign file. */
export function bridgeChecks(
  { target }: Pick<Campaign, 'target'>,
  o: { root?: string; kinds?: typeof environments; named?: string } = {},
): CheckItem[] {
  const { root = projectRoot, kinds = environments, named } = o;
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
