/**
 * What has to hold of the parts that a campaign picks before any work starts: each is known, can be opened and can work on the target, and arms
 * find what they read and whom they ask. `campaign doctor`, `run`, `plan` and the step `prepare` go through this list.
 */
import { takeConversations } from '../conversations/read';
import { armName, type Campaign, type SelectionRule } from '../domain/campaign';
import type { EnvironmentDescription } from '../domain/environment';
import { kindOf } from '../domain/kinds';
import type { Registry } from '../registry';
import { moduleFiles } from '../sandbox/source';
import { type CheckItem, Lack } from './check';

interface CheckedParts {
  campaign: Campaign;
  /** Of the target; without it analyst and synthesizer are opened only. */
  describe: () => Promise<EnvironmentDescription | undefined>;
  registry: Registry;
}

interface Part {
  unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined;
}

export function partChecks({ campaign, describe, registry }: CheckedParts): CheckItem[] {
  const { analyst, synthesizer, selection, router, arms } = campaign;
  const opened = (
    name: 'analyst' | 'synthesizer',
    o: { kind: string; open: () => Part | Promise<Part>; lacks: (reason: string) => { warning: string } },
  ): CheckItem => ({
    name,
    afterRollouts: true,
    fix: `correct the field ${name} of the campaign file`,
    async run() {
      const part = await o.open();
      const description = await describe();
      if (!description) return `${o.kind}, not held against the target`;
      const reason = part.unsuited?.(description, selection);
      return reason === undefined ? o.kind : o.lacks(reason);
    },
  });
  return [
    opened('analyst', {
      kind: analyst.kind,
      open: () => kindOf(registry.analysts, analyst).open(analyst, undefined),
      lacks(reason) {
        throw new Lack(reason, 'change the field analyst of the campaign file');
      },
    }),
    opened('synthesizer', {
      kind: synthesizer.kind,
      open: () => kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined),
      // The arms still train.
      lacks: (reason) => ({
        warning: `capabilities will end not_synthesized and get no adapter; ${synthesizer.kind}: ${reason}`,
      }),
    }),
    { name: 'router', afterRollouts: true, run: () => void kindOf(registry.routers, router) },
    ...arms.flatMap((spec) => armChecks(spec, campaign, registry)),
  ];
}

function armChecks(spec: Campaign['arms'][number], campaign: Campaign, registry: Registry): CheckItem[] {
  const asks: CheckItem = {
    name: `arm ${armName(spec)}`,
    afterRollouts: true,
    fix: 'correct it in the campaign file',
    run: () => void kindOf(registry.arms, spec).languageModel?.(spec, campaign),
  };
  const file = registry.arms.find(({ kind }) => kind === spec.kind)?.reads?.(spec);
  if (!file) return [asks];
  const { field, path } = file;
  const reads: CheckItem = {
    name: field,
    afterRollouts: true,
    fix: `correct ${field} in the campaign file, or what it names`,
    async run() {
      if (file.holds === 'modules') return `${(await moduleFiles(path)).length} modules in ${path}`;
      const conversations = await takeConversations({ file: path, minReward: file.minReward });
      return `${conversations.length} conversations in ${path}`;
    },
  };
  return [asks, reads];
}
