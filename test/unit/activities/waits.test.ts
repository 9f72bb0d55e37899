/** Each part that an activity waits for hangs for ever, one at a time: the activity heartbeats, and ends by that wait's own deadline. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mapped } from '../../../src/activities/errors';
import { withDeadline } from '../../../src/store/deadline';
import { openFolderStore } from '../../../src/store/open-store';
import type { FailureType } from '../../../src/domain/failures';
import { languageModelSchema } from '../../../src/domain/endpoints';
import { openProcessEnvironment } from '../../../src/environments/process';
import { openLanguageModel } from '../../../src/llm/model';
import { runPython } from '../../../src/policy/python';
import { openPolicyServer } from '../../../src/policy/server';
import { LearnerProcess } from '../../../src/training/learner-process';
import { type Loopback, startLoopback } from '../../support/loopback';
import { askingBy, memoryLedger } from '../../support/memory-ledger';
import { temporaryFolder } from '../../support/temporary-folder';

jest.setTimeout(60_000);
const home = temporaryFolder();
const store = openFolderStore(join(home, 'artifacts'));
let silent: Loopback;
beforeAll(async () => {
  silent = await startLoopback(() => undefined);
});
afterAll(() => silent.close());

const SECONDS = 1;
/** A program that neither answers nor ends. */
function sleeper(name: string): string {
  const path = join(home, name);
  writeFileSync(path, '#!/bin/sh\nexec sleep 300\n');
  chmodSync(path, 0o755);
  return path;
}

const waits: Record<string, { work: () => Promise<unknown>; type: FailureType }> = {
  'policy server': {
    type: 'PolicyServerTimeout',
    work: async () => {
      const server = openPolicyServer({ url: silent.url, concurrency: 1, requestTimeoutMs: SECONDS * 1000 });
      return server.complete({}).finally(server.close);
    },
  },
  environment: {
    type: 'EnvironmentDied',
    work: async () => {
      const environment = openProcessEnvironment({ command: [sleeper('environment')], silenceMs: SECONDS * 1000 });
      return environment.describe().finally(() => environment.close());
    },
  },
  'language model': {
    type: 'LanguageModelFailed',
    work: async () => {
      const spec = languageModelSchema.parse({ url: silent.url, model: 'm', timeoutSeconds: SECONDS });
      const question = { messages: [{ role: 'user' as const, content: 'x' }], seed: 0 };
      return openLanguageModel('analyst', spec).ask(question, askingBy(memoryLedger()));
    },
  },
  store: {
    type: 'StoreUnavailable',
    work: () => withDeadline({ ...store, find: () => new Promise(() => undefined) }, SECONDS).find('key'),
  },
  'Python child': {
    type: 'PythonFailed',
    work: () => runPython({ python: sleeper('python'), args: ['merge'], silentSeconds: SECONDS }),
  },
  learner: {
    type: 'TrainerHung',
    work: async () => {
      const limits = { startSeconds: SECONDS, stallSeconds: SECONDS };
      const options = { log: join(home, 'learner.log'), env: {}, limits };
      const learner = new LearnerProcess({ command: [sleeper('learner')], ...options });
      for await (const message of learner.messages()) throw new Error(message.type);
    },
  },
};

test.each(Object.entries(waits))('the %s', async (_name, { work, type }) => {
  let beats = 0;
  const activity = new MockActivityEnvironment();
  activity.on('heartbeat', () => beats++);
  await expect(activity.run(mapped({ work }, { home, store }).work)).rejects.toMatchObject({ type });
  expect(beats).toBeGreaterThan(0);
});
