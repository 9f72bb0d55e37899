/**
 * An OpenAI-compatible endpoint that plays recorded replies (test/recorded/README.md). Invariants: equal questions get equal replies, whatever
 * the model's name or sampling; a question without a reply fails.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { codeIn } from '../../src/llm/answer';
import { digest } from '../../src/store/hash';
import { startChatServer, type ChatServer } from './chat-server';
import { answered, streamed } from './model-endpoint';

export const recordedFolder = resolve(__dirname, '..', 'recorded');

/** Returns a module for tau2-bench retail as a language model wrote it: without the schemas, which are put before it. It passes the self-test. */
export const recordedModule = (): string =>
  codeIn(readFileSync(join(recordedFolder, 'tau2-retail', '55302d8e59e0a18c.md'), 'utf8'), ['javascript'])!;

export const questionSchema = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.string() })).min(1),
  seed: z.number().int().optional(),
});
type Question = z.infer<typeof questionSchema>;

/** sha256 over canonical JSON of messages and seed. */
export const questionHash = ({ messages, seed }: Question): string => digest({ messages, seed });

const promptText = ({ messages }: Question): string =>
  messages.map(({ role, content }) => `--- ${role}\n${content.trimEnd()}\n`).join('\n');

/** Starts a server for a folder of test/recorded. RECORD_PROMPTS names a folder for the prompts that have no reply. */
export const startRecordedReplies = (set: string): Promise<ChatServer> =>
  startChatServer((body, response) => {
    const question = questionSchema.parse(body);
    const name = questionHash(question).slice(0, 16);
    const reply = join(recordedFolder, set, `${name}.md`);
    if (existsSync(reply)) return streamed(readFileSync(reply, 'utf8'), { piece: 400 })(body, response);
    const folder = process.env['RECORD_PROMPTS'];
    if (folder !== undefined) writeFileSync(join(folder, `${name}.prompt.txt`), promptText(question));
    const message = `no recorded reply ${reply}: the prompt changed; see test/recorded/README.md`;
    return answered(404, JSON.stringify({ error: { message } }))(body, response);
  });
