/** What studies found, kept in the science home, and the page of all that is there. Invariant: a study that has not run leaves no trace in it. */
import { cpus, totalmem } from 'node:os';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pageOf } from './page';
import { repository, type Settings } from './settings';
import type { Section } from './study';

const TEMPLATE = join(repository, 'science', 'template.md');

const fileOf = ({ home }: Settings, study: string): string => join(home, 'sections', `${study}.json`);

export function keepSection(o: { settings: Settings; study: string; section: Section }): void {
  const file = fileOf(o.settings, o.study);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `${JSON.stringify(o.section, null, 2)}\n`);
}

/** A small run's page means nothing: it stays in its home. @returns where the page is. */
export function writePage({ settings, studies }: { settings: Settings; studies: readonly string[] }): string {
  const folder = settings.small ? settings.home : join(repository, 'docs', 'results');
  const sections = new Map<string, Section>([['page', { texts: { machine: machine() } }]]);
  for (const study of studies) {
    const file = fileOf(settings, study);
    if (existsSync(file)) sections.set(study, JSON.parse(readFileSync(file, 'utf8')) as Section);
  }
  for (const [study, { pictures = {} }] of sections)
    for (const [name, svg] of Object.entries(pictures))
      writeFileSync(join(folder, `science-${study}-${name}.svg`), svg);
  const page = join(folder, 'science.md');
  writeFileSync(page, pageOf({ template: readFileSync(TEMPLATE, 'utf8'), sections }));
  return page;
}

function machine(): string {
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cores.length} cores (${cores[0]?.model.trim()}), ${memory} GiB, Node ${process.versions.node}`;
}
