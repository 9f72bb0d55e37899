/**
 * Sends modules back to the language model with what was found of them, through the real synthesizer and recorded replies, until they pass the self-test:
 *
 *   node -r ./test/support/register.cjs test/recorded/revise-environments.ts SET FEEDBACK.json --out FOLDER [--record FOLDER]
 *
 * FEEDBACK holds by capability what `revise` is handed: {"NAME": {"module": "file.js", "round": 3, "previous": {"rejection": "..."}}}, or a calibration
 * report in the place of the rejection. Modules that pass go to FOLDER/NAME.js.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openFolderStore } from '../../src/artifacts/folder-store';
import { kindOf } from '../../src/domain/kinds';
import { openLedger } from '../../src/language-model/ledger';
import { selfTest } from '../../src/sandbox/self-test';
import { synthesizers } from '../../src/synthesis';
import type { ReviseInput } from '../../src/synthesis/synthesizer';
import { discoverRecorded } from '../support/analyse-recorded';
import { startRecordedReplies } from '../support/recorded-replies';

type Previous = ReviseInput['previous'];
interface Feedback {
  module: string;
  round: number;
  previous: Partial<Omit<Previous, 'source'>>;
}
/** Of a module that does not pass. */
const MOST_ROUNDS = 4;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { record: { type: 'string' }, out: { type: 'string' } },
  });
  const [set, file] = positionals;
  const { out, record } = values;
  if (set === undefined || file === undefined || out === undefined)
    throw new Error('revise-environments.ts SET FEEDBACK.json --out FOLDER [--record FOLDER]');
  const wanted = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Feedback>;
  const found = await discoverRecorded({ set });
  const lacking = found.discovery.candidates;
  const folder = mkdtempSync(join(tmpdir(), 'revise-recorded-'));
  const server = await startRecordedReplies({ set, record });
  try {
    const ledger = openLedger({ store: openFolderStore(folder), campaign: set, budget: {} });
    const spec = { kind: 'llm', url: server.url, model: 'recorded', timeoutSeconds: 86_400 };
    const synthesizer = await kindOf(synthesizers, spec).open(spec, undefined);
    const work = { forbidden: [], seed: 1, ledger, progress: () => {}, signal: new AbortController().signal };
    mkdirSync(out, { recursive: true });
    await Promise.all(
      Object.entries(wanted).map(async ([name, { module, round: first, previous: told }]) => {
        const candidate = lacking.find((one) => one.name === name);
        if (!candidate) throw new Error(`${file}: ${name} is none of ${lacking.map((one) => one.name).join(', ')}`);
        const others = lacking.flatMap((one) =>
          one.name === name ? [] : [{ name: one.name, definition: one.definition }],
        );
        let previous: Previous = { findings: [], ...told, source: readFileSync(module, 'utf8') };
        for (let round = first; round < first + MOST_ROUNDS; round++) {
          const { source } = await synthesizer.revise({ ...found, ...work, candidate, others, round, previous });
          const { passed, findings } = await selfTest({ source });
          console.error(`${name}, round ${round}: ${passed ? 'passed' : findings.join(' | ')}`);
          if (passed) return writeFileSync(join(out, `${name}.js`), source);
          previous = { source, findings };
        }
      }),
    );
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
