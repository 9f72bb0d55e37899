/**
 * An OpenAI-compatible endpoint that plays recorded replies (test/recorded/README.md). Invariants: equal questions get equal replies,
 * whatever the model's name or sampling; a question without a reply fails, or, in recording mode, waits until somebody answers it.
 *
 *   node -r ./test/support/register.cjs test/support/recorded-replies.ts SET [--record FOLDER] [--port N]
 *
 * starts it by hand: SET is a folder of test/recorded, and each request is a line on stdout, its hash and whether a reply was there.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { startLoopback } from './loopback';
import { openRecordedSet, promptText, questionSchema, shortHash, writeWhole, type RecordedSet } from './recorded-set';

const bodySchema = questionSchema.extend({
  model: z.string(),
  stream: z.boolean().default(false),
  stream_options: z.object({ include_usage: z.boolean() }).optional(),
});
type Body = z.infer<typeof bodySchema>;

export interface RecordedRequest {
  hash: string;
  found: boolean;
}

export interface RecordedReplies {
  /** Of the API, with /v1. */
  url: string;
  /** In the order in which they came: what a real endpoint would have been paid for. */
  requests: RecordedRequest[];
  close(): Promise<void>;
}

interface RecordedRepliesOptions {
  /** Folder, or name of a set in test/recorded. */
  set: string;
  /** Folder of prompts and replies in recording mode; by default RECORD_PROMPTS of the environment. */
  record?: string | undefined;
  port?: number;
  onRequest?: (request: RecordedRequest) => void;
}

const POLL_MS = 200;
/** While a reply is waited for: proxies and clients give up on silent connections. */
const KEEP_ALIVE_MS = 10_000;
/** Pieces of a streamed reply. */
const PIECE = 400;

export async function startRecordedReplies({
  set,
  record = process.env['RECORD_PROMPTS'],
  port = 0,
  onRequest,
}: RecordedRepliesOptions): Promise<RecordedReplies> {
  const replies = openRecordedSet(set);
  const requests: RecordedRequest[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url !== '/v1/chat/completions') return fail(response, 404, `no such path: ${request.url}`);
    const body = bodySchema.parse(await json(request));
    const hash = shortHash(body);
    const known = replies.find(body);
    const asked = { hash, found: known !== undefined };
    requests.push(asked);
    onRequest?.(asked);
    if (known !== undefined) return answer(response, body, known);
    if (record === undefined) return fail(response, 404, missing(hash, replies));
    const reply = await awaited({ body, folder: record, replies, response });
    if (reply !== undefined) answer(response, body, reply);
  }

  const { url, close } = await startLoopback((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else fail(response, 500, String(error));
    });
  }, port);
  return { url: `${url}/v1`, requests, close };
}

const missing = (hash: string, { folder }: RecordedSet): string =>
  `no recorded reply to ${hash} in ${folder}: a prompt has changed, or was never answered; run with RECORD_PROMPTS=FOLDER ` +
  'and answer FOLDER/*.prompt.txt (test/recorded/README.md)';

/** The reply that somebody puts beside the prompt; undefined if the client has gone meanwhile. */
async function awaited({
  body,
  folder,
  replies,
  response,
}: {
  body: Body;
  folder: string;
  replies: RecordedSet;
  response: ServerResponse;
}): Promise<string | undefined> {
  const hash = shortHash(body);
  const [prompt, given] = [join(folder, `${hash}.prompt.txt`), join(folder, `${hash}.reply.md`)];
  mkdirSync(folder, { recursive: true });
  writeWhole(prompt, promptText(body));
  begin(response, body);
  for (let spokeAt = Date.now(); !response.destroyed;) {
    // Another request of the same question may have moved the reply already.
    if (existsSync(given)) {
      replies.add(body, readFileSync(given, 'utf8'));
      rmSync(given);
      rmSync(prompt, { force: true });
    }
    const reply = replies.find(body);
    if (reply !== undefined) return reply;
    if (Date.now() - spokeAt >= KEEP_ALIVE_MS) {
      response.write(body.stream ? ': waiting for a reply\n\n' : ' ');
      spokeAt = Date.now();
    }
    await sleep(POLL_MS);
  }
  return undefined;
}

function begin(response: ServerResponse, { stream }: Body): void {
  if (response.headersSent) return;
  response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
  response.flushHeaders();
}

/** Nobody counts tokens here: four characters are taken for one. */
const tokens = (text: string): number => Math.ceil(text.length / 4);

function answer(response: ServerResponse, body: Body, reply: string): void {
  const [prompt_tokens, completion_tokens] = [tokens(promptText(body)), tokens(reply)];
  const usage = {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: 0 },
  };
  const head = { id: shortHash(body), created: 0, model: body.model };
  begin(response, body);
  if (!body.stream) {
    const message = { role: 'assistant', content: reply };
    const choices = [{ index: 0, finish_reason: 'stop', message }];
    return void response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
  }
  const send = (choices: object[], more: object = {}) =>
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`);
  const pieces = Array.from({ length: Math.ceil(reply.length / PIECE) }, (_, n) =>
    reply.slice(n * PIECE, (n + 1) * PIECE),
  );
  send([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
  for (const content of pieces) send([{ index: 0, delta: { content }, finish_reason: null }]);
  send([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  if (body.stream_options?.include_usage) send([], { usage });
  response.end('data: [DONE]\n\n');
}

function fail(response: ServerResponse, status: number, message: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ error: { message, type: 'invalid_request_error', code: null } }));
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { record: { type: 'string' }, port: { type: 'string', default: '0' } },
  });
  const [set, ...more] = positionals;
  const port = Number(values.port);
  if (set === undefined || more.length > 0 || !Number.isInteger(port))
    throw new Error('recorded-replies.ts SET [--record FOLDER] [--port N]: one set is needed, and N is a number');
  const onRequest = (request: RecordedRequest) => console.log(JSON.stringify(request));
  const { url } = await startRecordedReplies({ set, port, onRequest, ...(values.record && { record: values.record }) });
  console.log(JSON.stringify({ url, set, record: values.record ?? process.env['RECORD_PROMPTS'] ?? null }));
}

if (require.main === module)
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
