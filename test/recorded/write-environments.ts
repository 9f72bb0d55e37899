/**
 * Writes environments for capabilities of a recorded analysis, from recorded replies, and tests them:
 *
 *   node -r ./test/support/register.cjs test/recorded/write-environments.ts SET [--record FOLDER] [--only NAME...]
 *
 * SET is a folder of test/recorded with an evaluation.yaml, whose `environments` names those that tests write. Prints one JSON object.
 */
import { parseArgs } from 'node:util';
import { discoverRecorded } from '../support/analyse-recorded';
import { writeRecorded } from '../support/write-recorded';

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { record: { type: 'string' }, only: { type: 'string', multiple: true } },
  });
  const [set] = positionals;
  if (set === undefined) throw new Error('write-environments.ts SET [--record FOLDER]: name a folder of test/recorded');
  const found = await discoverRecorded({ set, ...(values.record !== undefined && { record: values.record }) });
  const { environments, requests } = await writeRecorded({
    set,
    ...(values.record !== undefined && { record: values.record }),
    target: found,
    lacking: found.discovery.candidates,
    only: values.only,
    say: (line) => console.error(line),
  });
  const rows = environments.map(({ name, rounds, gaveUp }) => ({
    name,
    rounds,
    ...(gaveUp !== undefined && { gaveUp }),
  }));
  console.log(JSON.stringify({ set, environments: rows, requests: requests.length }, undefined, 2));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
