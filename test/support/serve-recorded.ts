/**
 * Starts the endpoint of recorded replies by hand:
 *
 *   node -r ./test/support/register.cjs test/support/serve-recorded.ts SET [--record FOLDER] [--port N]
 *
 * SET is a folder of test/recorded. Each request is a line on stdout: its hash, and whether a reply was there.
 */
import { parseArgs } from 'node:util';
import { startRecordedReplies } from './recorded-replies';

const USAGE = 'serve-recorded.ts SET [--record FOLDER] [--port N]';

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { record: { type: 'string' }, port: { type: 'string', default: '0' } },
  });
  const [set, ...more] = positionals;
  if (set === undefined || more.length > 0) throw new Error(`one set is needed: ${USAGE}`);
  const port = Number(values.port);
  if (!Number.isInteger(port)) throw new Error(`--port ${values.port}: a number is needed: ${USAGE}`);
  const { url } = await startRecordedReplies({
    set,
    port,
    ...(values.record !== undefined && { record: values.record }),
    onRequest: (request) => console.log(JSON.stringify(request)),
  });
  console.log(JSON.stringify({ url, set, record: values.record ?? process.env['RECORD_PROMPTS'] ?? null }));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
