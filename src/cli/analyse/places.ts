/** Where an analysis lies: HOME/NAME, beside campaigns. Invariant: no campaign's folder is taken, nor an analysis's by a campaign. */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { campaignSchema } from '../../domain/campaign';
import { UserError } from '../errors';
import { isReservedName, type Home } from '../project';

export interface Place {
  name: string;
  /** The home's folder. */
  root: string;
  folder: string;
  json: string;
  html: string;
  /** Which conversations the name stands for. */
  conversations: string;
  humanLabels: string;
  /** The store's folder for what is not finished yet. */
  aside: string;
}

export function placeOf({ home, name }: { home: Pick<Home, 'root'>; name: string }): Place {
  const folder = join(home.root, name);
  const at = (file: string) => join(folder, file);
  return {
    name,
    root: home.root,
    folder,
    json: at('analysis.json'),
    html: at('analysis.html'),
    conversations: at('conversations.json'),
    humanLabels: at('human-labels.json'),
    aside: join(home.root, 'artifacts', 'aside'),
  };
}

/** The name that was given, else the first file's. @throws UserError where it can't be used. */
export function nameOf(o: { home: Pick<Home, 'root'>; files: readonly string[]; name?: string | undefined }): string {
  const name = o.name ?? fromFile(o.files[0] ?? '');
  const parsed = campaignSchema.shape.name.safeParse(name);
  if (!parsed.success) throw new UserError(`--name is "${name}"; it must be ${parsed.error.issues[0]?.message}`);
  const taken = isReservedName(name) || existsSync(join(o.home.root, name, 'report.json'));
  if (taken)
    throw new UserError(`${o.home.root} has a campaign or files of its own under "${name}"; give another --name`);
  return name;
}

/** Before a campaign starts. @throws UserError where an analysis has its name: they would share a folder, and what they spent. */
export function refuseNameOfAnalysis({ home, name }: { home: Pick<Home, 'root'>; name: string }): void {
  const { conversations, folder } = placeOf({ home, name });
  if (existsSync(conversations))
    throw new UserError(
      `name is "${name}", and ${folder} is an analysis of conversations (campaign analyse); give the campaign another name, ` +
        'in its file or with --name',
    );
}

const fromFile = (file: string): string =>
  basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63) || 'analysis';
