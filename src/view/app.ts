/**
 * What `campaign view` answers: the page, with where the campaign stands, the rollouts, and decisions on what waits for approval. Invariants: a name that leads to this
 * machine by somebody else's doing (DNS rebinding) is refused; nothing is answered without the token of the home, which other users of the machine
 * do not have; nothing is decided but for a page of this address; no answer may run as a script.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { getCookie, setCookie } from 'hono/cookie';
import { z } from 'zod';
import { sha256 } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { namesThisMachine } from '../gateway/listen';
import { pageHtml } from '../report/html';
import type { CampaignPage } from './api';
import { filterNames, neighboursOf, pageOf } from './filter';
import type { RolloutIndex } from './rollouts';
import { shownRollout } from './shown';

const decisionSchema = z.strictObject({
  verb: z.enum(['approve', 'reject']),
  what: z.array(z.string()),
  of: z.array(z.string()),
  reason: z.string().optional(),
});
export type GivenDecision = z.infer<typeof decisionSchema>;

export interface ViewOptions {
  /** The secret in the page's first address, and then in a cookie. */
  token: string;
  index: RolloutIndex;
  store: ArtifactStore;
  page: () => Promise<CampaignPage>;
  decide: (decision: GivenDecision) => Promise<object>;
  /** Returns the sha256 of the batches behind a figure or an artifact. */
  behind: (start: string) => Promise<ReadonlySet<string>>;
  /** What is told of an error to whoever asked; undefined where it is nobody's fault who asks. */
  told: (error: unknown) => string | undefined;
  log?: (line: string) => void;
}

class Refused extends Error {
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 413 | 415,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes of a decision. JSON of this size is parsed in milliseconds, whatever it holds. */
const DECISION_BYTES = 64 * 1024;

const isToken = (given: string | undefined, token: string): boolean =>
  given !== undefined && timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(token)));

const TOKEN_FIX = 'this page needs its token: open the whole address that `campaign view` prints';

/** A link from another site, such as Temporal's UI, comes without the cookie; the page then asks again by itself, and the browser sends it. */
function refuseWithoutToken(c: Context) {
  if (c.req.path !== '/' || c.req.query('again') !== undefined) throw new Refused(401, TOKEN_FIX);
  return c.html(`<!doctype html><meta http-equiv="refresh" content="0; url=/?again"><p>${TOKEN_FIX}</p>`, 401);
}

export function createView(o: ViewOptions) {
  const { index, store, log = () => undefined } = o;
  const app = new Hono();
  app.onError((error, c) => {
    if (error instanceof Refused) return c.text(error.message, error.status);
    const told = o.told(error);
    if (told === undefined) log(error.stack ?? error.message);
    return c.text(told ?? 'it can not be answered; the terminal of `campaign view` says why', told ? 400 : 500);
  });
  app.use(async (c, next) => {
    c.header('x-content-type-options', 'nosniff');
    c.header('referrer-policy', 'no-referrer');
    c.header('cross-origin-resource-policy', 'same-origin');
    c.header('cache-control', 'no-store');
    // The page has a policy of its own, with the hash of its script.
    const isPage = c.req.path === '/';
    c.header(
      'content-security-policy',
      isPage ? "frame-ancestors 'none'" : "default-src 'none'; frame-ancestors 'none'",
    );
    const host = c.req.header('host') ?? '';
    if (!namesThisMachine(host))
      throw new Refused(403, `host ${host.slice(0, 100)} is not this machine: ask for 127.0.0.1`);
    // Cookies are sent to all ports of a host, so the name has the port.
    const cookie = `campaign-view-${host.split(':').at(-1)}`;
    if (isPage && isToken(c.req.query('token'), o.token)) {
      setCookie(c, cookie, o.token, { httpOnly: true, sameSite: 'Strict', path: '/' });
      return c.redirect('/');
    }
    if (!isToken(getCookie(c, cookie), o.token)) return refuseWithoutToken(c);
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') {
      if (c.req.header('origin') !== `http://${host}`)
        throw new Refused(403, 'origin: only a page of this address decides');
      if (!/^application\/json\b/i.test(c.req.header('content-type') ?? ''))
        throw new Refused(415, 'content-type: send application/json');
    }
    await next();
  });
  app.get('/', async (c) => c.html(pageHtml(await o.page())));
  // `report`: the end of the campaign in the report that the page has.
  app.get('/api/page', async (c) => {
    const { report, ...page } = await o.page();
    const isKnown = report?.campaign.finishedAt === c.req.query('report');
    return c.json(isKnown || !report ? page : { ...page, report });
  });
  const limit = bodyLimit({
    maxSize: DECISION_BYTES,
    onError: () => {
      throw new Refused(413, `body: it has more than ${DECISION_BYTES} bytes; send {verb, what, of, reason}`);
    },
  });
  app.post('/api/approvals', limit, async (c) => {
    const parsed = decisionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (parsed.success) return c.json(await o.decide(parsed.data));
    const [issue] = parsed.error.issues;
    throw new Refused(400, `${issue?.path.join('.') || 'body'}: ${issue?.message}; send {verb, what, of, reason}`);
  });
  /** Returns the filters of a list, and the batches behind its figure. */
  async function filtersOf(asked: Record<string, string>) {
    const unknown = Object.keys(asked).find((name) => ![...filterNames, 'page', 'figure'].includes(name));
    if (unknown !== undefined)
      throw new Refused(
        400,
        `${unknown.slice(0, 100)} is no filter; there are ${filterNames.join(', ')}, figure and page`,
      );
    return [asked, asked['figure'] ? await o.behind(asked['figure']) : undefined] as const;
  }
  app.get('/api/rollouts', async (c) => {
    await index.refresh();
    return c.json(await pageOf(index, ...(await filtersOf(c.req.query()))));
  });
  app.get('/api/rollouts/:id', async (c) => {
    await index.refresh();
    const id = c.req.param('id');
    const one = index.find(id);
    if (!one) throw new Refused(404, `there is no rollout ${id.slice(0, 100)} in this campaign`);
    const [asked, batches] = await filtersOf(c.req.query());
    const neighbours = await neighboursOf(index, { ...asked, id: one.id }, batches);
    return c.json({ ...(await shownRollout(index, store, one)), ...neighbours });
  });
  return { app };
}
