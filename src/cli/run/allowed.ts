/** The file from which a home's workers read what they may use: the programs, key variables and addresses that its open campaigns' files name. */
import { readFileSync } from 'node:fs';
import { asideIn, replaceFile } from '../../store/durable-file';
import { located } from '../../store/given';
import { type Allowed, type AllowedByCampaign, variableEntry } from '../../domain/allowed';
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { pickProgram } from '../../environments/kinds';
import { withPlugins } from '../../plugins';
import { withPlaces } from '../campaign-file';
import { campaignState } from '../control';
import type { Home } from '../project';
import type { Temporal } from '../temporal';

/** Returns the programs and variables that a campaign's file names, in the form that its workers compare. */
export function namedBy(campaign: Campaign): Allowed {
  const { environments } = withPlugins(campaign.plugins);
  const { target, trainer } = located(withPlaces(campaign));
  const { kind, runs, read } = kindOf(environments, target);
  const { passEnv = [] } = target as { passEnv?: string[] };
  return {
    programs: runs ? [JSON.parse(JSON.stringify(pickProgram(kind, read(target) as object, runs)))] : [],
    variables: [
      ...passEnv.map((name) => variableEntry(name)),
      ...endpointVariables(campaign),
      ...(trainer.kind === 'tinker' ? [variableEntry('TINKER_API_KEY', trainer.url)] : []),
    ],
  };
}

/** Returns the key variable and address of every endpoint that has a key. */
function endpointVariables(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { url, apiKeyEnv } = value as { url?: unknown; apiKeyEnv?: unknown };
  const own = typeof url === 'string' && typeof apiKeyEnv === 'string' ? [variableEntry(apiKeyEnv, url)] : [];
  return [...own, ...Object.values(value).flatMap(endpointVariables)];
}

/**
 * Adds what the campaign's file names, before the campaign starts. With `temporal` it leaves out campaigns that do not run: only the home's
 * supervisor may do so, since another campaign's workers may be starting.
 */
export async function allowCampaign({
  home,
  campaign,
  temporal,
}: {
  home: Home;
  campaign: Campaign;
  temporal?: Temporal;
}): Promise<void> {
  const before = Object.entries(readAllowed(home));
  const states = temporal && (await Promise.all(before.map(([name]) => campaignState(temporal, name))));
  const all = Object.fromEntries(before.filter((_, n) => !states || states[n]?.status === 'RUNNING'));
  const [own, known] = [namedBy(campaign), all[campaign.name]];
  // One that runs may have been started from a checkout elsewhere.
  all[campaign.name] = {
    programs: [...own.programs, ...(known?.programs ?? [])],
    variables: [...new Set([...own.variables, ...(known?.variables ?? [])])],
  };
  await replaceFile({ path: home.allowed, body: JSON.stringify(all, null, 1), aside: asideIn(home.root) });
}

/** Returns the names of the home's open campaigns. */
export const allowedNames = (home: Home): string[] => Object.keys(readAllowed(home));

/** Returns the programs and variables that the files of a home's campaigns name. */
export const allowedIn = (home: Home): Allowed[] => Object.values(readAllowed(home));

/** Returns an empty record if there is no such file or it is damaged. */
function readAllowed({ allowed }: Home): AllowedByCampaign {
  try {
    return JSON.parse(readFileSync(allowed, 'utf8')) as AllowedByCampaign;
  } catch {
    return {};
  }
}
