/** A scenario and how it is run: on a home of its own, beside an undisturbed run of the same campaign file, with the same checks at its end. */
import { cpSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Stage } from '../../src/domain/campaign';
import type { Report } from '../../src/report/model';
import { newCampaign, writeCampaign } from './campaign-run';
import { campaignFiles, type CampaignFile } from './faults-campaigns';
import { CAMPAIGN, decisionsOf, readReport, violationsOf, type Allowances } from './faults-checks';
import { processesOf, signal } from './faults-processes';
import { faultSeed, randomOf } from './faults-random';
import { Session } from './faults-session';

export interface Scenario {
  name: string;
  file: CampaignFile;
  allow?: Allowances;
  /** The home is a copy of one whose campaign stopped after this stage or ended, instead of an empty one. */
  from?: Stage | 'end';
  /** Only with what it prepares is its file a whole one: there is no undisturbed run to hold it against. */
  alone?: true;
  /** Why it can't run here. */
  unable?: () => string | undefined;
  /** Makes what the campaign needs; returns further lines of its file. */
  prepare?: (session: Session) => Promise<string>;
  /** Starts the campaign and disturbs it; the last command that it started is waited for. Returns what it found beside the common checks. */
  act: (session: Session) => Promise<string[] | void>;
}

interface Reference {
  report: Report;
  decisions: object;
  violations: string[];
}

export interface Outcome {
  violations: string[];
  /** One line for people. */
  text: string;
}

const references = new Map<CampaignFile, Promise<Reference>>();
const templates = new Map<string, Promise<string>>();

/** The same file, left alone: once a process. */
export function referenceOf(file: CampaignFile): Promise<Reference> {
  const known = references.get(file) ?? undisturbed(file);
  references.set(file, known);
  return known;
}

async function undisturbed(file: CampaignFile): Promise<Reference> {
  const session = newSession(file, 'undisturbed');
  try {
    session.start();
    await session.finish();
    process.stdout.write(`undisturbed ${file}: ${session.seconds.toFixed(0)} s\n`);
    const report = readReport(session.home);
    return { report, decisions: decisionsOf(report), violations: await violationsOf(session) };
  } finally {
    await leave(session);
    rmSync(dirname(session.file), { recursive: true, force: true });
  }
}

function newSession(file: CampaignFile, name: string): Session {
  const campaign = newCampaign(CAMPAIGN, campaignFiles[file]);
  return new Session(campaign.home, campaign.file, randomOf(name));
}

/** A home whose campaign stopped after `stage`: made once a process, to be copied. */
function templateOf(file: CampaignFile, stage: Stage | 'end'): Promise<string> {
  const key = `${file} ${stage}`;
  const known = templates.get(key) ?? stoppedAfter(file, stage);
  templates.set(key, known);
  return known;
}

async function stoppedAfter(file: CampaignFile, stage: Stage | 'end'): Promise<string> {
  const session = newSession(file, 'template');
  session.start(...(stage === 'end' ? [] : ['--until', stage]));
  await session.finish();
  return session.home.root;
}

/** To be called when no scenario follows. */
export async function removeTemplates(): Promise<void> {
  const made = await Promise.allSettled(templates.values());
  for (const one of made) if (one.status === 'fulfilled') rmSync(dirname(one.value), { recursive: true, force: true });
  templates.clear();
}

/** Runs a scenario and says how it went; its home stays where something is wrong. */
export async function runScenario(scenario: Scenario): Promise<Outcome> {
  const { name, file, allow, from, alone, prepare, act } = scenario;
  const reference = alone ? undefined : await referenceOf(file);
  const template = from && (await templateOf(file, from));
  const session = newSession(file, name);
  const violations: string[] = [];
  try {
    if (template) cpSync(template, session.home.root, { recursive: true, preserveTimestamps: true });
    const lines = (await prepare?.(session)) ?? '';
    writeCampaign({ file: session.file, name: CAMPAIGN, lines: campaignFiles[file] + lines });
    violations.push(...((await act(session)) ?? []));
    await session.finish();
    const checked = { home: session.home, file: session.file, reference: reference?.decisions, allow };
    violations.push(...(await violationsOf(checked)));
  } catch (error) {
    violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  const { seconds } = session;
  await leave(session);
  if (violations.length === 0) rmSync(dirname(session.file), { recursive: true, force: true });
  else violations.push(`its home is ${session.home.root}; FAULT_SEED=${faultSeed} draws the same again`);
  const end = violations.length === 0 ? 'ok  ' : 'FAIL';
  const text = [`${end} ${name}: ${seconds.toFixed(0)} s`, ...session.notes].join('; ');
  process.stdout.write(`${text}\n`);
  return { violations, text };
}

/** Ends what is left, so that one scenario never disturbs the next. */
async function leave({ home, cleanups }: Session): Promise<void> {
  for (const { pid } of processesOf(home)) signal(pid, 'SIGKILL');
  for (const clean of cleanups.reverse()) await clean();
}
