/**
 * `campaign codec-server`: decrypts payloads for Temporal's UI, by the protocol of https://docs.temporal.io/codec-server. Invariant: it listens on
 * loopback alone, and answers no page but the UI's.
 */
import { once } from 'node:events';
import { temporal } from '@temporalio/proto';
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import { encryption, encryptionKeys } from '../temporal/codec';
import { print } from '../terminal';
import { messageOf, UserError } from './errors';
import type { CommonOptions } from './options';
import { listenAt } from './ports';

export interface CodecServerOptions extends CommonOptions {
  port: number;
  /** Origin of the UI's pages. */
  ui: string;
}

const { Payloads } = temporal.api.common.v1;
const none = () => undefined;

/** Until it is interrupted. @throws UserError if there is no key, or the port is taken. */
export async function serveCodec({ port, ui, json }: CodecServerOptions): Promise<void> {
  const keys = encryptionKeys();
  if (keys.length === 0) throw new UserError('CAMPAIGN_ENCRYPTION_KEY is not set: set it to the key of the workers');
  const codec = encryption(keys);
  const app = new Hono();
  const allowHeaders = ['content-type', 'x-namespace', 'authorization'];
  app.use(cors({ origin: ui, allowMethods: ['POST'], allowHeaders }), async (context, next) => {
    const origin = context.req.header('origin');
    if (origin === undefined || origin === ui) return next();
    return context.json({ message: `pages of ${origin} are refused; --ui names its own` }, 403);
  });
  app.post('*', async (context, next) => {
    if (!context.req.path.endsWith('/decode')) return next();
    const { payloads } = Payloads.fromObject(await context.req.json<object>());
    const decoded = Payloads.fromObject({ payloads: await codec.decode(payloads) });
    return context.json(Payloads.toObject(decoded, { bytes: String }));
  });
  app.notFound((context) => context.json({ message: 'there is POST /decode' }, 404));
  app.onError((error, context) => context.json({ message: messageOf(error) }, 400));
  const served = { app, drain: none, running: () => 0, stop: none };
  const { url, close } = await listenAt(served, { host: '127.0.0.1', port });
  print(json ? JSON.stringify({ url }) : `${url} decrypts for ${ui}: name it as the UI's codec server; Ctrl-C ends it`);
  await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  await close(0);
}
