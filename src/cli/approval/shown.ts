/**
 * What waits, to be looked at: as text, and as files of the home: approval.html, and under approval/ the texts that --edit takes back.
 * Invariant: a copy that somebody may have edited is not written over.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ArtifactStore } from '../../artifacts/store';
import { capabilitiesView, environmentView, type ApprovalView } from '../../report/approval/build';
import { approvalHtml, type Waits } from '../../report/approval/page';
import type { AskedOf } from './asked';

interface Place {
  campaign: string;
  /** The campaign's folder in the home. */
  folder: string;
  store: ArtifactStore;
}

export interface Shown extends Waits {
  /** A copy of what waits, to be edited. */
  file: string;
}

/** Writes the files. @returns what they show, and where the page is. */
export async function showWaits(waits: readonly AskedOf[], at: Place): Promise<{ shown: Shown[]; page: string }> {
  const { campaign, folder, store } = at;
  const copies = join(folder, 'approval');
  mkdirSync(copies, { recursive: true });
  const shown: Shown[] = [];
  for (const asked of waits) {
    const { file, text } = await copyOf(asked, { ...at, folder: copies });
    if (!existsSync(file)) writeFileSync(file, text);
    shown.push({ view: await viewOf(asked, store), commands: commandsFor(asked, { campaign, file }), file });
  }
  const page = join(folder, 'approval.html');
  writeFileSync(page, approvalHtml({ campaign, at: new Date().toISOString(), waits: shown }));
  return { shown, page };
}

async function viewOf({ waiting, capabilities, environment }: AskedOf, store: ArtifactStore): Promise<ApprovalView> {
  if (environment) return { waiting, environment: await environmentView({ store, ...environment }) };
  if (!capabilities) throw new Error(`nothing is shown of what waits for approval: ${waiting.names.join(', ')}`);
  const { rollouts, selection: found } = capabilities;
  return { waiting, capabilities: await capabilitiesView({ store, rollouts, found }) };
}

async function copyOf(asked: AskedOf, { folder, store }: Place): Promise<{ file: string; text: string }> {
  const module = asked.environment?.rounds.at(-1)?.module;
  const version = asked.waiting.of.slice(0, 8);
  if (module)
    return {
      file: join(folder, `${asked.environment!.candidate.name}-${version}.js`),
      text: (await store.read(module)).toString('utf8'),
    };
  const selected = asked.capabilities?.selection.selected ?? [];
  const list = selected.map(({ candidate: { name, definition } }) => ({ name, definition }));
  return {
    file: join(folder, `capabilities-${version}.yaml`),
    text: `# To go on with: word definitions anew; what is not in the list is left out.\n${stringify(list)}`,
  };
}

function commandsFor({ waiting, environment }: AskedOf, o: { campaign: string; file: string }): string[] {
  const { campaign, file } = o;
  const name = environment ? ` ${waiting.names[0]}` : '';
  return [
    `campaign approve ${campaign}${name}`,
    `campaign approve ${campaign}${name} --edit ${file}`,
    `campaign reject ${campaign}${name || ' NAME...'} --reason TEXT`,
  ];
}
