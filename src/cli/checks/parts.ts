/** Whether analyst and synthesizer can be opened, and can work on a target, and arms find what they read. Without its description they are opened only. */
import { takeConversations } from '../../conversations/read';
import type { Campaign, SelectionRule } from '../../domain/campaign';
import type { EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import type { Registry } from '../../registry';
import { moduleFiles } from '../../sandbox/module-files';
import { messageOf } from '../errors';
import { failed, passed, warned, type Check } from './check';

/** A target that no environment can be synthesized for is no lack: its arms still train. */
export async function checkParts(o: {
  campaign: Campaign;
  description: EnvironmentDescription | undefined;
  registry: Registry;
}): Promise<Check[]> {
  const { campaign, description, registry } = o;
  const { analyst, synthesizer, selection: rule } = campaign;
  return [
    await checkPart({
      field: 'analyst',
      kind: analyst.kind,
      open: async () => kindOf(registry.analysts, analyst).open(analyst, undefined),
      description,
      rule,
      unsuited: (why) => failed('analyst', why, 'change the field analyst of the campaign file'),
    }),
    await checkPart({
      field: 'synthesizer',
      kind: synthesizer.kind,
      open: async () => kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined),
      description,
      rule,
      unsuited: (why) =>
        warned('synthesizer', `capabilities will end not_synthesized and get no adapter; ${synthesizer.kind}: ${why}`),
    }),
    ...(await checkArms(campaign, registry)),
  ];
}

/** What arms read from the disk. */
async function checkArms({ arms }: Campaign, registry: Registry): Promise<Check[]> {
  const read = arms.flatMap((spec) => kindOf(registry.arms, spec).reads?.(spec) ?? []);
  return Promise.all(
    read.map(async (what) => {
      try {
        const found =
          what.holds === 'modules'
            ? `${(await moduleFiles(what.path)).length} modules`
            : `${(await takeConversations({ file: what.path, minReward: what.minReward })).length} conversations`;
        return passed(what.field, `${found} in ${what.path}`);
      } catch (error) {
        return failed(what.field, messageOf(error), `correct ${what.field} in the campaign file, or what it names`);
      }
    }),
  );
}

async function checkPart(o: {
  field: 'analyst' | 'synthesizer';
  kind: string;
  open: () => Promise<{ unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined }>;
  rule: SelectionRule;
  description: EnvironmentDescription | undefined;
  /** What it is where the part can't work on the target. */
  unsuited: (why: string) => Check;
}): Promise<Check> {
  try {
    const part = await o.open();
    if (!o.description) return passed(o.field, `${o.kind}, not held against the target`);
    const why = part.unsuited?.(o.description, o.rule);
    return why === undefined ? passed(o.field, o.kind) : o.unsuited(why);
  } catch (error) {
    return failed(o.field, messageOf(error), `correct the field ${o.field} of the campaign file`);
  }
}

/** What a target tells of itself that analysts and synthesizers may need. */
export function toldBy({ tools, hasReference, rules = [] }: EnvironmentDescription): string {
  const schemas = tools.filter(({ outputSchema }) => outputSchema).length;
  return [
    `${hasReference ? 'reference actions' : 'no reference actions'}`,
    `${rules.length || 'no'} rules`,
    tools.length === 0 ? 'no tools' : `output schemas of ${schemas} of ${tools.length} tools`,
  ].join(', ');
}
