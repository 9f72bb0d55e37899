/** Asks a base model's tokenizer what it does not know of some texts. Invariant: takes well under a second, and no model is loaded. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokenCountsSchema, type TokenCounts } from '../domain/base-check';
import { runPython } from './python';

/** `model`: the base model's folder. Throws BadInput if it holds a tokenizer that can't be read. */
export async function checkTokens({
  python,
  model,
  texts,
  signal,
}: {
  python: string;
  model: string;
  texts: readonly string[];
  signal?: AbortSignal;
}): Promise<TokenCounts> {
  const folder = await mkdtemp(join(tmpdir(), 'tokens-'));
  try {
    const [from, to] = [join(folder, 'texts.json'), join(folder, 'tokens.json')];
    await writeFile(from, JSON.stringify({ model, texts }));
    await runPython({ python, args: ['check-tokens', '--in', from, '--out', to], ...(signal && { signal }) });
    return tokenCountsSchema.parse(JSON.parse(await readFile(to, 'utf8')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
