/** What studies measured, kept in the science home, and the tables of all that is there. A study that has not run leaves no table. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository, type Settings } from './settings';
import type { Section } from './study';
import { campaignsTable, csvOf, type Table } from './tables';

const fileOf = ({ home }: Settings, study: string): string => join(home, 'sections', `${study}.json`);

export function keepSection(o: { settings: Settings; study: string; section: Section }): void {
  const file = fileOf(o.settings, o.study);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `${JSON.stringify(o.section, null, 2)}\n`);
}

/** A small run's figures mean nothing: they stay in its home. @returns the folder with the tables. */
export function writeTables({ settings, studies }: { settings: Settings; studies: readonly string[] }): string {
  const folder = settings.small ? join(settings.home, 'tables') : join(repository, 'docs', 'results', 'science');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const all: Record<string, Table> = {};
  for (const study of studies) {
    const file = fileOf(settings, study);
    if (!existsSync(file)) continue;
    const { tables } = JSON.parse(readFileSync(file, 'utf8')) as Section;
    for (const [name, table] of Object.entries(tables)) all[`${study}-${name}`] = table;
  }
  for (const [name, table] of Object.entries({ ...all, campaigns: campaignsTable(all) }))
    writeFileSync(join(folder, `${name}.csv`), csvOf(table));
  return folder;
}
