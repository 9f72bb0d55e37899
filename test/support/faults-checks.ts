/**
 * Checks after every disturbance: the campaign equals that of an undisturbed run, no finished work was repeated, and no half-written
 * file and no process is left. Invariant: each violation is a sentence of its own; a good end has none.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import { digest } from '../../src/store/hash';
import type { Home } from '../../src/cli/project';
import { waitUntil } from '../../src/cli/services/processes';
import { figuresIn } from '../../src/domain/artifacts';
import type { Report } from '../../src/report/model';
import { isSuccess, type Rollout, type ScoredRollout } from '../../src/domain/rollout';
import { readScored } from '../../src/rollout/read';
import { CampaignRun, reportOf } from './campaign-run';
import { artifacts, filesBelow, namesIn, StoredKeys, trainingsOf, wholeObject } from './faults-home';
import { processesOf } from './faults-processes';

export const CAMPAIGN = 'faults';
/** Characters of a message that nothing else contains by chance. */
const LEAST_TEXT = 20;

export interface Allowances {
  /** The policy server is what fails: rollouts may end as broken, and are counted so. */
  broken?: boolean;
  /** Lost results were made again, so the store may hold more than the report counts. */
  madeAgain?: boolean;
}

const reportFile = (home: Home): string => join(home.root, CAMPAIGN, 'report.json');
export const readReport = (home: Home): Report => reportOf(home, CAMPAIGN);

/** All scored rollouts of a home's batches by key, and whether each is a success. */
export async function rolloutsIn(home: Home): Promise<Map<string, boolean>> {
  return new Map((await scoredIn(home)).map((rollout) => [rollout.key, isSuccess(rollout)]));
}

/** Returns the scored rollouts of all whole batches. */
export async function scoredIn(home: Home): Promise<ScoredRollout[]> {
  const store = openFolderStore(artifacts(home));
  const batches = new StoredKeys(home)
    .matching(/^rollouts\/[0-9a-f]{64}$/)
    .filter(({ ref }) => wholeObject(home, ref.sha256) !== undefined);
  return (await Promise.all(batches.map(({ ref }) => readScored({ store, ref })))).flat();
}

/** Returns the decisions that must not depend on disturbances, with the checkpoints that were compared. */
export function decisionsOf(report: Report): object {
  const steps = (training?: { iterations: { step: number }[] }) => training?.iterations.map(({ step }) => step) ?? [];
  const counted = report.rollouts?.byPurpose.filter(({ purpose }) => purpose === 'base_rollouts' || purpose === 'test');
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  return {
    status: report.campaign.status,
    candidates: [...(report.selection?.candidates ?? [])]
      .sort(byName)
      .map(({ name, votes, passes, selected }) => ({ name, votes, passes, selected })),
    capabilities: [...(report.capabilities ?? [])]
      .sort(byName)
      .map(({ name, status, reason, training }) => ({ name, status, reason, iterations: steps(training) })),
    arms: [...(report.arms ?? [])]
      .sort(byName)
      .map(({ name, status, training }) => ({ name, status, iterations: steps(training) })),
    rollouts: counted?.map(({ purpose, scored, broken }) => [purpose, (scored.value ?? 0) + (broken.value ?? 0)]),
    leakage: report.leakage?.passed,
  };
}

/** All checks. `reference` is undefined for the run that becomes it. */
export async function violationsOf(o: {
  home: Home;
  file: string;
  reference?: object | undefined;
  allow?: Allowances | undefined;
}): Promise<string[]> {
  const { home, file, reference, allow = {} } = o;
  const report = readReport(home);
  const found = [
    ...decisions(report, reference, allow),
    ...(await readable(home, report)),
    ...playedTwice(home, report, allow),
    ...trainedTwice(home),
    ...(await textsInTemporal(home)),
  ];
  const running = () => processesOf(home);
  await waitUntil(() => running().length === 0, 15);
  for (const { pid, words } of running()) found.push(`process ${pid} is left: ${words.join(' ').slice(0, 200)}`);
  return [...found, ...(await afterOnceMore(home, file))];
}

function decisions(report: Report, reference: object | undefined, { broken }: Allowances): string[] {
  const [made, wanted] = [JSON.stringify(decisionsOf(report)), JSON.stringify(reference ?? decisionsOf(report))];
  const count = report.rollouts?.broken.value ?? 0;
  return [
    ...(report.campaign.status === 'completed' ? [] : [`the campaign is ${report.campaign.status}, not completed`]),
    ...(made === wanted ? [] : [`other decisions than undisturbed:\n  ${made}\n  ${wanted}`]),
    ...(count > 0 && !broken ? [`${count} rollouts are reported as broken`] : []),
  ];
}

/** Every figure of the report leads to artifacts that are whole. */
async function readable(home: Home, report: Report): Promise<string[]> {
  const store = openFolderStore(artifacts(home));
  const refs = new Map(figuresIn(report).flatMap(({ from }) => from.map((ref) => [ref.sha256, ref] as const)));
  const found: string[] = [];
  for (const ref of refs.values())
    await Promise.all([store.provenance(ref), store.read(ref)]).catch((error: Error) => found.push(error.message));
  return found;
}

/** One rollout, one key, one record, wherever it stands; and the report counts just those. */
function playedTwice(home: Home, report: Report, { madeAgain }: Allowances): string[] {
  const found: string[] = [];
  const contents = new Map<string, string>();
  const complete = new Set<string>();
  for (const { key, ref } of new StoredKeys(home).matching(/^rollouts\/[0-9a-f]{64}(\/incomplete\/.*)?$/)) {
    const body = wholeObject(home, ref.sha256);
    if (body === undefined) {
      if (!madeAgain) found.push(`batch ${key} is not whole in the store`);
      continue;
    }
    for (const line of body.trim().split('\n')) {
      const rollout = JSON.parse(line) as Rollout;
      if (rollout.status !== 'scored') continue;
      // The digest ignores the order of fields, which a reader may change. A rollout whose record was damaged is made again in the next batch that
      // holds it, with log-probs that differ in their last digits.
      const content = digest(rollout);
      if (!madeAgain && (contents.get(rollout.key) ?? content) !== content)
        found.push(`rollout ${rollout.key} was played twice`);
      contents.set(rollout.key, content);
      if (!key.includes('/incomplete/')) complete.add(rollout.key);
    }
  }
  const counted = report.rollouts?.scored.value ?? 0;
  if (madeAgain ? counted > contents.size : counted !== complete.size && counted !== contents.size)
    found.push(
      `the report counts ${counted} rollouts, the store holds ${contents.size}, ${complete.size} in whole batches`,
    );
  return found;
}

/** Finds repeated training steps in the stored metrics; a learner's own folder is not read again once it has ended. */
function trainedTwice(home: Home): string[] {
  return new StoredKeys(home).matching(/^training\/[0-9a-f]+\/metrics\/\d+\//).flatMap(({ key, ref }) => {
    const done = (wholeObject(home, ref.sha256) ?? '').split('\n').filter(Boolean);
    const steps = done.map((line) => (JSON.parse(line) as { step: number }).step);
    const wanted = Array.from({ length: Number(key.split('/')[3]) }, (_, n) => n + 1);
    if (steps.length === 0 || steps.join() === wanted.join()) return [];
    return [`${key} has the steps ${steps.join()} instead of 1 to ${wanted.length}`];
  });
}

/** Messages of conversations are in the store alone: Temporal's database holds references to them. */
async function textsInTemporal(home: Home): Promise<string[]> {
  const files = filesBelow(home.root).filter((file) => /\/temporal\.db(-wal)?$/.test(file));
  const database = Buffer.concat(files.map((file) => readFileSync(file)));
  const texts = new Set((await scoredIn(home)).flatMap(({ messages }) => messages.map(({ content }) => content)));
  const written = [...texts]
    .filter((text) => text.length >= LEAST_TEXT)
    .map((text) => JSON.stringify(text).slice(1, -1));
  const found = written.filter((text) => database.includes(text));
  return [
    ...(written.length > 0 ? [] : ['no conversation holds a message to look for in Temporal']),
    ...(database.includes(`"name":"${CAMPAIGN}"`) ? [] : ['what Temporal holds of the campaign is not readable']),
    ...found.map((text) => `Temporal holds the message ${text.slice(0, 200)}`),
  ];
}

/** The same command once more makes nothing, shows the same, and has nothing half-written beside it. */
async function afterOnceMore(home: Home, file: string): Promise<string[]> {
  const before = readFileSync(reportFile(home), 'utf8');
  const again = new CampaignRun(home, file);
  const code = await again.exit;
  const left = [
    ...namesIn(artifacts(home, 'aside')).map((name) => `artifacts/aside/${name}`),
    // Elsewhere, too: whatever a writer has not given its name yet.
    ...filesBelow(home.root).filter((path) => /\.part$|-\d+-[0-9a-f]{16}$/.test(path) && !path.includes('/aside/')),
    ...trainingsOf(home).flatMap((training) =>
      namesIn(training)
        .filter((name) => name.startsWith('adapter-'))
        .map((name) => join(training, name)),
    ),
  ];
  return [
    ...(code === 0 ? [] : [`the same command once more ended with ${code}:\n${again.output}`]),
    ...(readFileSync(reportFile(home), 'utf8') === before ? [] : ['the same command once more changed report.json']),
    ...left.map((path) => `half-written: ${path}`),
  ];
}
