/** A scenario and how it is run: on a home of its own, beside an undisturbed run of the same campaign file, with the same checks at its end. */
import { appendFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Stage } from '../../src/domain/campaign';
import type { Report } from '../../src/report/model';
import { newCampaign, repository, writeCampaign } from './campaign-run';
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
  /** Run only where its name is asked for. */
  onlyByName?: boolean;
  /** Why it can't run here. */
  unable?: () => string | undefined;
  /** Makes what the campaign needs; returns further lines of its file. */
  prepare?: (session: Session) => Promise<string>;
  /** Starts the campaign and disturbs it; the last command that it started is waited for. Returns what it found beside the common checks. */
  act: (session: Session) => Promise<string[] | void>;
  /** What to say of the time; returns a violation where it is too long. */
  judge?: (time: Time) => { text: string; violation?: string | undefined };
}

export interface Time {
  seconds: number;
  reference: Reference;
}

interface Reference {
  report: Report;
  decisions: object;
  seconds: number;
  /** Until the workflow was started: what every start of the command costs. */
  startSeconds: number;
  violations: string[];
}

export interface Outcome {
  scenario: string;
  seed: number;
  violations: string[];
  seconds: number;
  /** Against the undisturbed run, where there is one. */
  lostSeconds?: number;
  ratio?: number;
  notes: string[];
}

const resultsFile = join(repository, '.cache/faults.jsonl');
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
    const run = session.start();
    let startSeconds = 0;
    await session.until(() => {
      startSeconds = session.seconds;
      return run.lines().some(({ stage, detail }) => stage === 'campaign' && detail?.includes('started'));
    }, 'its start');
    await session.finish();
    const { seconds } = session;
    const violations = await violationsOf(session);
    process.stdout.write(
      `undisturbed ${file}: ${seconds.toFixed(0)} s, ${startSeconds.toFixed(0)} s of them to start\n`,
    );
    const report = readReport(session.home);
    return { report, decisions: decisionsOf(report), seconds, startSeconds, violations };
  } finally {
    await leave(session);
    rmSync(dirname(session.file), { recursive: true, force: true });
  }
}

function newSession(file: CampaignFile, name: string, seed = faultSeed): Session {
  const campaign = newCampaign(CAMPAIGN, campaignFiles[file]);
  return new Session(campaign.home, campaign.file, randomOf(name, seed));
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
export async function runScenario(scenario: Scenario, seed = faultSeed): Promise<Outcome> {
  const { name, file, allow, from, alone, prepare, act, judge } = scenario;
  const reference = alone ? undefined : await referenceOf(file);
  const template = from && (await templateOf(file, from));
  const session = newSession(file, name, seed);
  const violations: string[] = [];
  try {
    if (template) cpSync(template, session.home.root, { recursive: true, preserveTimestamps: true });
    const lines = (await prepare?.(session)) ?? '';
    writeCampaign({ file: session.file, name: CAMPAIGN, lines: campaignFiles[file] + lines });
    violations.push(...((await act(session)) ?? []));
    await session.finish();
    const checked = { home: session.home, file: session.file, reference: reference?.decisions, allow };
    violations.push(...(await violationsOf(checked)));
    const judged = reference && judge?.({ seconds: session.seconds, reference });
    if (judged) session.notes.push(judged.text);
    if (judged?.violation) violations.push(judged.violation);
  } catch (error) {
    violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  const { seconds } = session;
  await leave(session);
  if (violations.length === 0) rmSync(dirname(session.file), { recursive: true, force: true });
  else violations.push(`its home is ${session.home.root}; FAULT_SEED=${seed} draws the same again`);
  return record({ scenario: name, seed, violations, seconds, reference, notes: session.notes });
}

/** Ends what is left, so that one scenario never disturbs the next. */
async function leave({ home, cleanups }: Session): Promise<void> {
  for (const { pid } of processesOf(home)) signal(pid, 'SIGKILL');
  for (const clean of cleanups.reverse()) await clean();
}

function record({ reference, ...told }: Outcome & { reference: Reference | undefined }): Outcome {
  const { seconds } = told;
  const outcome: Outcome = {
    ...told,
    seconds: Math.round(seconds),
    ...(reference && {
      lostSeconds: Math.round(seconds - reference.seconds),
      ratio: Number((seconds / reference.seconds).toFixed(2)),
    }),
  };
  mkdirSync(dirname(resultsFile), { recursive: true });
  appendFileSync(resultsFile, `${JSON.stringify(outcome)}\n`);
  process.stdout.write(`${textOf(outcome)}\n`);
  return outcome;
}

/** One line for people. */
export function textOf({ scenario, violations, seconds, lostSeconds, ratio, notes }: Outcome): string {
  const end = violations.length === 0 ? 'ok  ' : 'FAIL';
  const lost = ratio === undefined ? '' : `, lost ${lostSeconds} s (x${ratio})`;
  return [`${end} ${scenario}: ${seconds} s${lost}`, ...notes].join('; ');
}
