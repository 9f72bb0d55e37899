/** Leakage check: no capability text, example or code of a played module may contain a test task's text, compared as words. */
import type { ArtifactStore } from '../store/store';
import { openingOf } from '../domain/messages';
import type { Work } from '../domain/work';
import type { CampaignRecord, LeakageCheck } from '../domain/results';
import { isDistinctive, messageHash, normalised, spelledOut } from '../sandbox/leakage';
import { readRollouts } from '../rollout/read';
import type { Environments } from './environments';
import { taskText, testTexts } from './tasks';

/** Returns the test task whose whole text is in `text`, if there is one. */
export function leaked(tests: Map<string, string>, text: string): string | undefined {
  for (const [test, task] of tests) if (` ${text} `.includes(` ${test} `)) return task;
  return undefined;
}

/** Searches selected capabilities, examples and played modules for texts of test tasks. Undefined before the selection. */
export async function checkLeakage(o: {
  store: ArtifactStore;
  environments: Environments;
  record: CampaignRecord;
  progress?: Work['progress'];
}): Promise<LeakageCheck | undefined> {
  const { store, environments, record, progress = () => undefined } = o;
  const { campaign, selection, baseRollouts } = record;
  if (!selection) return undefined;
  const target = await environments.get(campaign.target);
  const tests = await testTexts({ store, environment: target, progress });
  const distinctive = new Map([...tests].filter(([text]) => isDistinctive(messageHash(text))));
  const texts: { where: string; text: string; among?: Map<string, string> }[] = [];
  const candidates = selection.selected.map(({ candidate }) => candidate);
  for (const { name, definition } of candidates)
    texts.push({ where: `capability ${name}`, text: normalised(`${name} ${definition}`) });
  const modules = playedModules(record);
  for (const { name, module } of modules.values()) {
    const source = spelledOut((await store.read(module)).toString('utf8'));
    texts.push({ where: `${name}, its code`, text: normalised(source), among: distinctive });
  }
  // The stored texts of examples are checked, since a simulated user may word a task differently after a reset.
  const examples = new Set(candidates.flatMap((candidate) => candidate.examples));
  for await (const rollout of readRollouts({ store, ref: baseRollouts.ref }))
    if (examples.has(rollout.key) && rollout.status === 'scored')
      texts.push({ where: `exemplar ${rollout.task}`, text: taskText(openingOf(rollout.messages)) });
  const hits = texts.flatMap(({ where, text, among = tests }) => {
    const task = leaked(among, text);
    return task === undefined ? [] : [{ where, task }];
  });
  return {
    passed: hits.length === 0,
    textsChecked: texts.length,
    testTasks: tests.size,
    hits,
    from: [selection.candidates, ...[...modules.values()].map(({ module }) => module)],
  };
}

/** Returns the modules that were played, by hash, each with the capability or the baseline that played it. */
function playedModules({ capabilities = [], arms = [] }: CampaignRecord) {
  const played = [
    ...capabilities.flatMap(({ name, rounds }) => {
      // A module that failed its self-test was never played.
      const round = rounds.findLast(({ selfTest }) => selfTest.passed);
      return round?.calibrationRollouts ? [{ name, module: round.module }] : [];
    }),
    ...arms.flatMap(({ name, trainedOn = [] }) => trainedOn.map((module) => ({ name, module }))),
  ];
  const modules = new Map<string, (typeof played)[number]>();
  for (const one of played) if (!modules.has(one.module.sha256)) modules.set(one.module.sha256, one);
  return modules;
}
