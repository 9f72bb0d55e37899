/**
 * What has to hold of the parts that a campaign picks before any work starts: analyst and synthesizer can be opened and can work on the target, and
 * arms find what they read. Invariant: `campaign doctor`, `campaign run` and the step `prepare` go through the same list.
 */
import { takeConversations } from '../conversations/read';
import type { Campaign, SelectionRule } from '../domain/campaign';
import type { EnvironmentDescription } from '../domain/environment';
import { kindOf } from '../domain/kinds';
import type { Registry } from '../registry';
import { moduleFiles } from '../sandbox/source';
import { failed, passed, warned, type Check } from './check';

/** A check that may also throw: a part that can't be opened, a file that can't be read. */
interface PartCheck {
  /** Of the campaign file. */
  field: string;
  /** What mends it where it throws. */
  fix: string;
  run(): Promise<Check>;
}

interface CheckedParts {
  campaign: Campaign;
  /** Without it analyst and synthesizer are opened only. */
  description: EnvironmentDescription | undefined;
  registry: Registry;
}

export function partChecks({ campaign, description, registry }: CheckedParts): PartCheck[] {
  const { analyst, synthesizer, selection } = campaign;
  return [
    {
      field: 'analyst',
      fix: 'correct the field analyst of the campaign file',
      async run() {
        const part = await kindOf(registry.analysts, analyst).open(analyst, undefined);
        const reason = unsuited(part, description, selection);
        return reason === undefined
          ? passed('analyst', openedText(analyst, description))
          : failed('analyst', reason, 'change the field analyst of the campaign file');
      },
    },
    {
      field: 'synthesizer',
      fix: 'correct the field synthesizer of the campaign file',
      async run() {
        const part = await kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined);
        const reason = unsuited(part, description, selection);
        // The arms still train.
        return reason === undefined
          ? passed('synthesizer', openedText(synthesizer, description))
          : warned(
              'synthesizer',
              `capabilities will end not_synthesized and get no adapter; ${synthesizer.kind}: ${reason}`,
            );
      },
    },
    ...campaign.arms.flatMap((spec) => {
      const file = kindOf(registry.arms, spec).reads?.(spec);
      return file ? [fileCheck(file)] : [];
    }),
  ];
}

const openedText = ({ kind }: { kind: string }, description: EnvironmentDescription | undefined): string =>
  description ? kind : `${kind}, not held against the target`;

const unsuited = (
  part: { unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined },
  description: EnvironmentDescription | undefined,
  rule: SelectionRule,
): string | undefined => description && part.unsuited?.(description, rule);

type FileToRead = ReturnType<NonNullable<Registry['arms'][number]['reads']>>;

const fileCheck = (file: FileToRead): PartCheck => ({
  field: file.field,
  fix: `correct ${file.field} in the campaign file, or what it names`,
  async run() {
    const count =
      file.holds === 'modules'
        ? `${(await moduleFiles(file.path)).length} modules`
        : `${(await takeConversations({ file: file.path, minReward: file.minReward })).length} conversations`;
    return passed(file.field, `${count} in ${file.path}`);
  },
});
