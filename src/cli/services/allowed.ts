/** The file of what a home's workers may use and load: the programs, key variables, addresses and plug-ins that its open campaigns' files name. */
import { asideIn, replaceFile } from '../../store/durable-file';
import { located } from '../../store/given';
import { type Allowed, variableEntry } from '../../domain/allowed';
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { pickProgram } from '../../environments/kinds';
import { withPlugins } from '../../plugins';
import { withPlaces } from '../campaign-file';
import { campaignState } from '../control';
import { messageOf } from '../errors';
import { type Home, readJsonFile } from '../project';
import type { Temporal } from '../temporal';

/** The programs and plug-ins that a campaign's file names; plug-ins by their paths. Of one that has ended only the plug-ins are kept, for `serve`. */
type Named = Allowed & Pick<Campaign, 'plugins'> & { hasEnded?: boolean };

/** Returns the programs and variables that a campaign's file names, in the form that its workers compare. */
function namedBy(campaign: Campaign): Named {
  const { environments } = withPlugins(campaign.plugins);
  const { target, trainer } = located(withPlaces(campaign));
  const { kind, runs, read } = kindOf(environments, target);
  return {
    plugins: campaign.plugins,
    programs: runs ? [JSON.parse(JSON.stringify(pickProgram(kind, read(target) as object, runs)))] : [],
    variables: [
      ...variablesIn(campaign),
      ...(trainer.kind === 'tinker' ? [variableEntry('TINKER_API_KEY', trainer.url)] : []),
    ],
  };
}

/** Returns what any part of it names: the variables that programs get, and those of endpoints with their addresses. */
export function variablesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { url, apiKeyEnv, passEnv } = value as Record<string, unknown>;
  const own = typeof url === 'string' && typeof apiKeyEnv === 'string' ? [variableEntry(apiKeyEnv, url)] : [];
  const passed = Array.isArray(passEnv) ? passEnv.map((name) => variableEntry(String(name))) : [];
  return [...own, ...passed, ...Object.values(value).flatMap(variablesIn)];
}

/**
 * Adds what the campaign's file names, before the campaign starts. With `temporal` it leaves out campaigns that do not run: only the home's
 * supervisor may do so, since another campaign's workers may be starting.
 */
export async function allowCampaign(o: { home: Home; campaign: Campaign; temporal?: Temporal }): Promise<void> {
  const { home, campaign, temporal } = o;
  const before = Object.entries(readAllowed(home));
  const states = temporal && (await Promise.all(before.map(([name]) => campaignState(temporal, name))));
  const end = ({ plugins }: Named): Named => ({ plugins, programs: [], variables: [], hasEnded: true });
  const all = Object.fromEntries(
    before.map(([name, one], n) => [name, states && states[n]?.status !== 'RUNNING' ? end(one) : one]),
  );
  const [own, known] = [namedBy(campaign), all[campaign.name]];
  // One that runs may have been started from a checkout elsewhere.
  all[campaign.name] = {
    ...own,
    programs: [...own.programs, ...(known?.programs ?? [])],
    variables: [...new Set([...own.variables, ...(known?.variables ?? [])])],
  };
  await replaceFile({ path: home.allowed, body: JSON.stringify(all, null, 1), aside: asideIn(home.root) });
}

/** Returns the paths of a campaign's plug-ins, then those of the home's other open campaigns, which share its workers. Calls `note` for each one that cannot be loaded beside the others. */
export function pluginsToLoad(
  home: Home,
  { plugins }: Pick<Campaign, 'plugins'>,
  note: (text: string) => void,
): string[] {
  const paths = [...plugins];
  const open = Object.values(readAllowed(home)).filter(({ hasEnded }) => !hasEnded);
  for (const path of new Set(open.flatMap(({ plugins: own = [] }) => own)))
    try {
      if (paths.includes(path)) continue;
      withPlugins([...paths, path]);
      paths.push(path);
    } catch (error) {
      note(`${messageOf(error)}; steps of other campaigns of this home that need it fail`);
    }
  return paths;
}

/** Returns the paths of the plug-ins that a campaign's file named. */
export const pluginsOf = (home: Home, name: string): string[] => readAllowed(home)[name]?.plugins ?? [];

/** Returns the programs and variables that the files of a home's campaigns name. */
export const allowedIn = (home: Home): Allowed[] => Object.values(readAllowed(home));

/** Returns an empty record if there is no such file or it is damaged. */
const readAllowed = ({ allowed }: Home) => (readJsonFile(allowed) ?? {}) as Record<string, Named>;
