/** A policy server that misbehaves: a proxy before a real one. Invariant: what is not disturbed goes through byte for byte. */
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Random } from './faults-random';
import { startLoopback } from './loopback';

export type Misbehaviour =
  /** The answer comes, but seconds later. */
  | 'slow'
  | 'error 500'
  | 'busy 503'
  /** The connection breaks in the middle of the answer. */
  | 'cut off'
  /** Simulates a restarted server, which has no adapter. */
  | 'unknown model'
  /** An answer that is not in the dialect. */
  | 'nonsense'
  /** Refuses all connections, also for health checks. */
  | 'gone';

const SLOW_MS = 4000;

interface Refusal {
  status: number;
  type: string;
  body: string;
}
const json = (status: number, error: object): Refusal => ({
  status,
  type: 'application/json',
  body: JSON.stringify({ error: { ...error, code: status } }),
});
/** The answers in place of the server. */
const refusals: Partial<Record<Misbehaviour, Refusal>> = {
  'error 500': json(500, { message: 'out of memory', type: 'InternalServerError' }),
  'busy 503': json(503, { message: 'no capacity', type: 'ServiceUnavailable' }),
  'unknown model': json(404, { message: 'the model does not exist', type: 'NotFoundError', param: 'model' }),
  nonsense: { status: 200, type: 'text/html', body: '<html>gateway</html>' },
};

export interface Proxy {
  url: string;
  /** From now on this share of the completions goes wrong so; of `gone`, everything. */
  misbehave(how: Misbehaviour, share: number): void;
  behave(): void;
  /** Ends every connection; from now on another server answers, as if it had been started at this address. */
  replace(url: string): void;
  /** Completions that were disturbed. */
  disturbed: number;
  /** Completions by servers that replaced the first one. */
  answersOfOthers: string[];
  close(): Promise<void>;
}

export async function startProxy({ url, random }: { url: string; random: Random }): Promise<Proxy> {
  let how: Misbehaviour | undefined;
  let share = 0;
  let target = url;
  const { server, ...own } = await startLoopback(
    (question, answer) => void handle(question, answer).catch(() => answer.destroy()),
  );
  const self: Proxy = {
    ...own,
    disturbed: 0,
    answersOfOthers: [],
    misbehave(next, part) {
      how = next;
      share = part;
      if (how === 'gone') server.closeAllConnections();
    },
    behave: () => (how = undefined),
    replace(next) {
      target = next;
      server.closeAllConnections();
    },
  };

  async function handle(question: IncomingMessage, answer: ServerResponse): Promise<void> {
    if (how === 'gone') return void question.destroy();
    const body = await buffer(question);
    const completes = question.url === '/v1/chat/completions';
    const disturbs = how !== undefined && completes && random.next() < share;
    if (disturbs) self.disturbed++;
    const refusal = disturbs && how !== undefined ? refusals[how] : undefined;
    if (refusal) return void answer.writeHead(refusal.status, { 'content-type': refusal.type }).end(refusal.body);
    if (disturbs && how === 'slow') await new Promise((done) => setTimeout(done, SLOW_MS));
    const cut = disturbs && how === 'cut off';
    const to = target;
    const onAnswer = (bytes: Buffer) => {
      if (completes && to !== url) self.answersOfOthers.push(bytes.toString());
    };
    forward({ url: to, question, body, answer, cut, onAnswer });
  }

  return self;
}

function forward(o: {
  url: string;
  question: IncomingMessage;
  body: Buffer;
  answer: ServerResponse;
  cut: boolean;
  onAnswer: (bytes: Buffer) => void;
}): void {
  const { url, question, body, answer, cut, onAnswer } = o;
  const { method = 'GET', headers } = question;
  const onward = request(new URL(question.url ?? '/', url), { method, headers }, (from) => {
    const whole: Buffer[] = [];
    from.on('data', (chunk: Buffer) => whole.push(chunk));
    from.on('error', () => answer.destroy());
    from.on('end', () => {
      const bytes = Buffer.concat(whole);
      onAnswer(bytes);
      answer.writeHead(from.statusCode ?? 502, { ...from.headers, 'content-length': bytes.length });
      if (!cut) return answer.end(bytes);
      answer.write(bytes.subarray(0, bytes.length / 2), () => answer.destroy());
    });
  });
  onward.on('error', () => answer.destroy());
  answer.on('close', () => onward.destroy());
  onward.end(body);
}
