/**
 * A process that asks a language model questions, for tests of what outlives it: `--url URL --home FOLDER --campaign NAME --ask N[,N...]
 * [--tokens BUDGET] [--die put]`. With --die it is killed right before the reply is stored; else it prints the replies or the type of what was
 * thrown, a line each.
 */
import { parseArgs } from 'node:util';
import { openFolderStore } from '../../src/store/open-store';
import type { ArtifactStore } from '../../src/store/store';
import { languageModelSchema } from '../../src/domain/endpoints';
import { openLedger } from '../../src/llm/ledger';
import { settleSpending } from '../../src/llm/spending';
import { openLanguageModel } from '../../src/llm/model';

const option = { type: 'string' } as const;
const { values } = parseArgs({
  options: { url: option, home: option, campaign: option, ask: option, tokens: option, die: option },
});
const { url = '', home = '', campaign = '', ask = '', tokens, die } = values;

const killed = (): never => {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('killed');
};

async function main(): Promise<void> {
  const budget = tokens === undefined ? {} : { tokens: Number(tokens) };
  const stored = openFolderStore(home);
  const store: ArtifactStore = die === 'put' ? { ...stored, put: async () => killed() } : stored;
  const ledger = openLedger({ store, campaign, budget, role: 'analyst' });
  const model = openLanguageModel('analyst', languageModelSchema.parse({ url, model: 'm' }));
  for (const seed of ask.split(',').map(Number)) {
    const question = { messages: [{ role: 'user' as const, content: 'again?' }], seed };
    const asking = { ledger, step: `step ${seed % 2}`, signal: new AbortController().signal };
    const line = await model.ask(question, asking).then(
      ({ text }) => text,
      (error: { type?: string }) => String(error.type),
    );
    process.stdout.write(`${line}\n`);
  }
  await settleSpending(store);
}

void main();
