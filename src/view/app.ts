/**
 * The server of `campaign view`: `/` lists the campaigns of a home, `/NAME/` shows one, with where it stands, its rollouts, and decisions on
 * what waits for approval. Invariants: a name that leads to this machine through another site (DNS rebinding) is refused; nothing is
 * answered without the token of the home, which other users of the machine do not have; nothing is decided but for a page of this address; no
 * answer may run as a script.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { getCookie, setCookie } from 'hono/cookie';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { sha256 } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { namesThisMachine } from '../gateway/listen';
import { pageHtml } from '../report/html';
import type { CampaignPage, HomePage } from './api';
import { neighboursOf, pageOf } from './filter';
import type { RolloutIndex } from './rollouts';
import { shownRollout } from './shown';

const decisionSchema = z.strictObject({
  verb: z.enum(['approve', 'reject']),
  what: z.array(z.string()),
  of: z.array(z.string()),
  reason: z.string().optional(),
});
export type GivenDecision = z.infer<typeof decisionSchema>;

/** One campaign, as it is served. */
export interface ViewedCampaign {
  index: RolloutIndex;
  store: ArtifactStore;
  page: () => Promise<CampaignPage>;
  decide: (decision: GivenDecision) => Promise<object>;
  /** Returns the sha256 of the batches behind a figure or an artifact. */
  behind: (start: string) => Promise<ReadonlySet<string>>;
}

export interface ViewOptions {
  /** The secret in the page's first address, and then in a cookie. */
  token: string;
  home: () => Promise<HomePage>;
  /** Returns undefined if the home does not know the name. */
  campaign: (name: string) => Promise<ViewedCampaign | undefined>;
  /** Returns the message for the client; undefined if the error is internal and not caused by the request. */
  told: (error: unknown) => string | undefined;
  log?: (line: string) => void;
}

/** Maximum size of a decision's JSON, which is parsed in milliseconds. */
const DECISION_BYTES = 64 * 1024;

const refused = (status: 400 | 401 | 403 | 404, message: string) => new HTTPException(status, { message });

const isToken = (given: string | undefined, token: string): boolean =>
  given !== undefined && timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(token)));

const TOKEN_FIX = 'this page needs its token: open the whole address that `campaign view` prints';

const isPage = (c: Context): boolean => /^\/(?:[^/]+\/)?$/.test(c.req.path);

export function createView(o: ViewOptions) {
  const { log = () => undefined } = o;
  const app = new Hono();
  app.onError((error, c) => {
    if (error instanceof HTTPException) return c.text(error.message, error.status);
    const told = o.told(error);
    if (told === undefined) log(error.stack ?? error.message);
    return c.text(told ?? 'internal error; the terminal of `campaign view` shows it', told ? 400 : 500);
  });
  app.use(async (c, next) => {
    c.header('x-content-type-options', 'nosniff');
    c.header('referrer-policy', 'no-referrer');
    c.header('cross-origin-resource-policy', 'same-origin');
    c.header('cache-control', 'no-store');
    // A page has a policy of its own, with the hash of its script.
    c.header(
      'content-security-policy',
      isPage(c) ? "frame-ancestors 'none'" : "default-src 'none'; frame-ancestors 'none'",
    );
    const host = c.req.header('host') ?? '';
    if (!namesThisMachine(host))
      throw refused(403, `host ${host.slice(0, 100)} is not this machine: ask for 127.0.0.1`);
    // Cookies are sent to all ports of a host, so the name has the port.
    const cookie = `campaign-view-${host.split(':').at(-1)}`;
    if (isPage(c) && isToken(c.req.query('token'), o.token)) {
      setCookie(c, cookie, o.token, { httpOnly: true, sameSite: 'Lax', path: '/' });
      return c.redirect(c.req.path);
    }
    if (!isToken(getCookie(c, cookie), o.token)) throw refused(401, TOKEN_FIX);
    if (c.req.method === 'POST' && c.req.header('origin') !== `http://${host}`)
      throw refused(403, 'origin: only a page of this address decides');
    await next();
  });
  const unknown = (c: Context): HTTPException =>
    refused(404, `there is no page ${c.req.path.slice(0, 100)}; the page / lists the campaigns of this home`);
  app.notFound((c) => {
    throw unknown(c);
  });
  async function viewed(c: Context): Promise<ViewedCampaign> {
    const one = await o.campaign(c.req.param('name') ?? '');
    if (!one) throw unknown(c);
    return one;
  }
  app.get('/', async (c) => c.html(pageHtml(await o.home())));
  app.get('/:name/', async (c) => c.html(pageHtml(await (await viewed(c)).page())));
  // `report`: the end of the campaign in the report that the page has.
  app.get('/:name/api/page', async (c) => {
    const { report, ...page } = await (await viewed(c)).page();
    const isKnown = report?.campaign.finishedAt === c.req.query('report');
    return c.json(isKnown || !report ? page : { ...page, report });
  });
  app.post('/:name/api/approvals', bodyLimit({ maxSize: DECISION_BYTES }), async (c) => {
    const { decide } = await viewed(c);
    const parsed = decisionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (parsed.success) return c.json(await decide(parsed.data));
    const [issue] = parsed.error.issues;
    throw refused(400, `${issue?.path.join('.') || 'body'}: ${issue?.message}; send {verb, what, of, reason}`);
  });
  const behindFigure = ({ behind }: ViewedCampaign, { figure }: Record<string, string>) =>
    figure ? behind(figure) : undefined;
  app.get('/:name/api/rollouts', async (c) => {
    const own = await viewed(c);
    await own.index.refresh();
    const asked = c.req.query();
    return c.json(await pageOf(own.index, asked, await behindFigure(own, asked)));
  });
  app.get('/:name/api/rollouts/:id', async (c) => {
    const own = await viewed(c);
    const { index, store } = own;
    await index.refresh();
    const id = c.req.param('id');
    const one = index.find(id);
    if (!one) throw refused(404, `there is no rollout ${id.slice(0, 100)} in this campaign`);
    const asked = c.req.query();
    const neighbours = await neighboursOf(index, { ...asked, id: one.id }, await behindFigure(own, asked));
    return c.json({ ...(await shownRollout(index, store, one)), ...neighbours });
  });
  return { app };
}
