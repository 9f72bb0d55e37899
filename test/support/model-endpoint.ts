/** Correct and faulty behaviours of a language model's endpoint, for `play` of a chat server. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Play } from './chat-server';

interface Streamed {
  finish?: string | null;
  usage?: object | null;
  /** Characters of a piece. */
  piece?: number;
  pauseMs?: number;
}

export const usageOf = (prompt: number, completion: number, cached = 0) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: { cached_tokens: cached },
});

const begin = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' });
export const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
export const chunk = (delta: object, finish: string | null = null) => ({
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

/** A streamed reply as OpenAI's own. */
export function streamed(text: string | ((n: number) => string), o: Streamed = {}): Play {
  const { finish = 'stop', usage = usageOf(100, 10), piece = 8, pauseMs = 0 } = o;
  let n = 0;
  return async (_, response) => {
    const words = typeof text === 'string' ? text : text(n++);
    begin(response).write(event(chunk({ role: 'assistant', content: '' })));
    for (let at = 0; at < words.length; at += piece) {
      if (pauseMs > 0) await sleep(pauseMs);
      response.write(event(chunk({ content: words.slice(at, at + piece) })));
    }
    if (finish) response.write(event(chunk({}, finish)));
    if (usage) response.write(event({ choices: [], usage }));
    response.end('data: [DONE]\n\n');
    return undefined;
  };
}

/** An answer in JSON as models give it, after words of their own. */
export const fenced = (value: unknown): string => `I think.\n\n\`\`\`json\n${JSON.stringify(value)}\n\`\`\``;

/** Writes these bytes as an event stream, and then ends it, breaks the connection off or says no more. */
export const written =
  (text: string, then: 'ends' | 'breaks off' | 'is silent' = 'ends'): Play =>
  async (_, response) => {
    begin(response).write(text);
    await sleep(20);
    if (then === 'ends') response.end();
    if (then === 'breaks off') response.destroy();
    return undefined;
  };

export const answered =
  (status: number, body: string, headers: Record<string, string> = {}): Play =>
  (_, response) =>
    void response.writeHead(status, headers).end(body) as undefined;

export const page = '<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>please</body></html>';

/** One after the other, the last of them for ever. */
export function inOrder(...plays: Play[]): Play {
  let n = 0;
  return (body, response) => plays[Math.min(n++, plays.length - 1)]!(body, response);
}
