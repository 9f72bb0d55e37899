/** Which campaigns a home has: those with a folder in it, and those with results in its store. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { campaignSchema } from '../domain/campaign';
import { indexedCampaigns } from '../store/campaign-index';
import { openStore } from '../store/open-store';
import { isAnalysis } from './analyse/folder';
import { UserError } from './errors';
import { type Home, isReservedName } from './project';

/** @throws UserError if there is no home. */
export function requireHome({ root }: Home): void {
  if (!existsSync(root))
    throw new UserError('not_found', '--home', `there is no home ${root}; name another with --home`);
}

/** Returns the names, the campaign that changed last first; none where there is no home. */
export async function campaignNames(home: Home): Promise<string[]> {
  if (!existsSync(home.root)) return [];
  const { files } = await openStore(home.root);
  const folders = readdirSync(home.root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !isReservedName(entry.name))
    .map(({ name }) => name)
    // The lock of a home is a folder.
    .filter((name) => campaignSchema.shape.name.safeParse(name).success);
  const names = [...new Set([...folders, ...(await indexedCampaigns(files))])]
    .filter((name) => !isAnalysis(home, name))
    .sort();
  return names.sort((a, b) => (writtenAt(home, b) ?? 0) - (writtenAt(home, a) ?? 0));
}

/** Returns when the home's files of a campaign were written last, in ms since the epoch; undefined if it has none. */
export function writtenAt({ root }: Home, name: string): number | undefined {
  const written = ['status.json', 'report.json'].map(
    (file) => statSync(join(root, name, file), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
  return Math.round(Math.max(...written)) || undefined;
}

/** Returns the campaign that is named, else the one that changed last. @throws UserError that lists those that there are. */
export async function chooseCampaign(home: Home, name: string | undefined): Promise<string> {
  const known = await campaignNames(home);
  const [newest] = known;
  if (name !== undefined && known.includes(name)) return name;
  if (name === undefined && newest !== undefined) return newest;
  throw new UnknownCampaign(name, { home: home.root, known });
}

/** The server has no campaign of this name, or neither has the home. */
export class UnknownCampaign extends UserError {
  constructor(name: string | undefined, { home, known = [] }: { home?: string; known?: readonly string[] } = {}) {
    const those = known.length > 0 ? `known: ${known.join(', ')}` : 'none is known yet';
    const which = name === undefined ? 'no campaign' : `no campaign ${name}`;
    super(
      'not_found',
      'campaign',
      home === undefined
        ? `there is ${which} here; \`campaign list\` shows those that there are`
        : `there is ${which} in ${home}; ${those}`,
    );
  }
}
