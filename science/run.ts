/**
 * `make science`: many campaigns, one after another, and the tables of docs/results/science from their reports. Whatever ends it, the same
 * command goes on with it: campaigns are durable, and a finished one is found.
 */
import { Campaigns } from './campaigns';
import { endAtOnce, Interrupted } from './processes';
import { keepSection, writeTables } from './results';
import { say } from './say';
import { scaleOf } from './scale';
import { settingsOf } from './settings';
import { ablations } from './studies/ablations';
import { arms } from './studies/arms';
import { interference } from './studies/interference';
import { nullTests } from './studies/null';
import { plantings } from './studies/plantings';
import type { Study } from './study';

const all: readonly Study[] = [arms, plantings, nullTests, ablations, interference];
const INTERRUPTED = 130;

async function main(): Promise<number> {
  const settings = settingsOf(process.env);
  const studies = all.filter(({ name }) => settings.only.test(name));
  if (studies.length === 0)
    throw new Error(`ONLY is '${settings.only.source}'; studies are ${all.map(({ name }) => name).join(', ')}`);
  const { signal } = interruption();
  const scale = scaleOf(settings);
  const campaigns = new Campaigns({ home: settings.home, fields: scale.fields, signal });
  const failed: string[] = [];
  for (const study of studies) {
    if (signal.aborted) throw new Interrupted();
    say(`study ${study.name}`);
    try {
      const section = await study.run({ settings, scale, campaigns, signal });
      keepSection({ settings, study: study.name, section });
      say(`study ${study.name} is in ${writeTables({ settings, studies: all.map(({ name }) => name) })}`);
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      failed.push(`study ${study.name}: ${error instanceof Error ? error.stack : String(error)}`);
      say(`study ${study.name} FAILED; the others go on`);
    }
  }
  failed.push(...[...campaigns.failed].map((name) => `campaign ${name}`));
  for (const what of failed) say(`failed: ${what}`);
  return failed.length === 0 ? 0 : 1;
}

/** The first Ctrl-C lets what runs end in order; the second ends it at once, as `campaign run` does. */
function interruption(): { signal: AbortSignal } {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      if (controller.signal.aborted) {
        endAtOnce();
        process.exit(INTERRUPTED);
      }
      say('stopping in order; the same command goes on');
      controller.abort();
    });
  return controller;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    if (!(error instanceof Interrupted))
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(error instanceof Interrupted ? INTERRUPTED : 1);
  },
);
