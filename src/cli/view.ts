/** `campaign view`: serves the campaigns of a home as pages on this machine, live and after their end. */
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { isCode } from '../store/durable-file';
import { openStore } from '../store/open-store';
import type { ArtifactStore } from '../store/store';
import { OutsideFailure } from '../domain/failures';
import { spentOf } from '../llm/spending';
import { batchesBehind, UnknownStartError } from '../report/lineage';
import { note, print } from '../terminal';
import { createCurves } from '../view/curves';
import type { CampaignPage, ListedCampaign } from '../view/api';
import { createView, type ViewedCampaign } from '../view/app';
import { createIndex } from '../view/rollouts';
import { decideOn, shownApprovals } from './approvals';
import { type CampaignRow, campaignsOf, isWaiting, readStatus } from './campaign-status';
import { chooseCampaign, UnknownCampaign } from './campaigns';
import { UserError } from './errors';
import { type CommonOptions, homeOf, namespace } from './options';
import { listenAt } from './ports';
import { type Home, makeHome } from './project';
import { tryReport } from './reports';
import { uiOf } from './services/processes';
import { onInterrupt } from './services/supervisor';
import { type Temporal, withServer } from './temporal';
import type { Snapshot } from './watch/snapshot';
import { notesOf, stateOf, treeLines } from './watch/tree';

export interface ViewOptions extends CommonOptions {
  port: number;
}

/** The secret of the home's page. It stays, so that browsers that have it keep it. */
async function viewToken(home: Home): Promise<string> {
  await makeHome(home.root);
  const made = randomBytes(24).toString('base64url');
  await writeFile(home.viewToken, made, { mode: 0o600, flag: 'wx' }).catch((error: unknown) => {
    if (!isCode(error, 'EEXIST')) throw error;
  });
  return readFile(home.viewToken, 'utf8');
}

/** Pages that ask within this time get one answer. */
const SHARED_MS = 1000;

interface Viewed {
  campaign: string;
  home: Home;
  store: ArtifactStore;
  options: CommonOptions;
}

function viewedCampaign({ campaign, home, store, options }: Viewed): ViewedCampaign {
  const index = createIndex({ store, campaign });
  const curves = createCurves({ store, campaign, index });
  const reportOf = () => tryReport({ home: home.root, name: campaign });
  function liveState(snapshot: Snapshot | undefined) {
    if (!snapshot) {
      const notes = ['Neither this home nor its server knows a run of it. `campaign run FILE` starts it.'];
      return { state: 'not started', tree: [], notes };
    }
    const notes = [...notesOf(snapshot), ...(snapshot.failure === undefined ? [] : [`why: ${snapshot.failure}`])];
    return { state: stateOf(snapshot), tree: treeLines(snapshot, Date.now()), notes };
  }

  async function readPage(temporal: Temporal | undefined): Promise<CampaignPage> {
    const report = reportOf();
    await index.refresh();
    const snapshot = await readStatus(temporal, options, campaign).catch((error: unknown) => {
      if (error instanceof UnknownCampaign) return undefined;
      throw error;
    });
    const isLive = snapshot?.status === 'RUNNING';
    const waits = temporal && snapshot && isWaiting(snapshot) ? await shownApprovals(temporal, campaign, store) : [];
    const ui = temporal && snapshot && !options.temporalAddress ? uiOf(home) : undefined;
    const workflows = [campaign, ...(snapshot?.progress?.children ?? []).map(({ workflowId }) => workflowId)];
    const link = (id: string) => `${ui}/namespaces/${namespace()}/workflows/${encodeURIComponent(id)}`;
    const spent = () => spentOf({ store, campaign });
    return {
      ...{ kind: 'campaign', title: campaign, served: true, isLive },
      // The page does not have the matrix, which may be large.
      ...(report && { report: { ...report, solverMatrix: undefined } }),
      // A campaign that has ended without a report has its state alone.
      ...((isLive || !report) && {
        live: { ...liveState(snapshot), curves: await curves(), spent: await spent() },
      }),
      ...(waits.length > 0 && { approvals: waits }),
      ...(ui && { links: Object.fromEntries(workflows.map((id) => [id, link(id)])) }),
    };
  }
  // All open pages poll.
  let last: { at: number; page: Promise<CampaignPage> } | undefined;
  return {
    ...{ index, store },
    page() {
      if (!last || Date.now() - last.at > SHARED_MS) last = { at: Date.now(), page: withServer(options, readPage) };
      return last.page;
    },
    decide: async (decision) => ({ decided: await decideOn(campaign, decision, options) }),
    // Figures of a selection that waits for approval are in no report yet.
    behind: async (start) =>
      batchesBehind({ store, start, report: { report: reportOf(), approvals: (await last?.page)?.approvals } }),
  };
}

/** Returns a row of the list of campaigns, with what its report says. */
function listedCampaign(root: string, row: CampaignRow): ListedCampaign {
  const { name, status, attention, changedAt } = row;
  const { arms = [], recommendation } = tryReport({ home: root, name }) ?? {};
  const shipped = recommendation && arms.find((arm) => arm.name === recommendation.arm);
  return {
    name,
    state: attention === undefined ? status : `${status}, waits for ${attention}`,
    changed: changedAt,
    base: arms.find(({ role }) => role === 'base')?.successRate,
    shipped: shipped && { name: shipped.name, successRate: shipped.successRate },
  };
}

/** Serves the campaigns of a home, or one that is named first, until it is interrupted. @throws UserError */
export async function serveView(name: string | undefined, options: ViewOptions): Promise<void> {
  const home = homeOf(options);
  if (name !== undefined) await chooseCampaign(home, name);
  const rows = () => withServer(options, (temporal) => campaignsOf(temporal, options));
  const store = await openStore(home.root);
  const viewed = new Map<string, ViewedCampaign>();
  async function campaign(asked: string): Promise<ViewedCampaign | undefined> {
    if (!viewed.has(asked) && (await rows()).some((row) => row.name === asked))
      viewed.set(asked, viewedCampaign({ campaign: asked, home, store, options }));
    return viewed.get(asked);
  }
  const token = await viewToken(home);
  const view = createView({
    ...{ token, campaign },
    home: async () => ({
      ...{ kind: 'home', title: `Campaigns of ${home.root}` },
      campaigns: (await rows()).map((row) => listedCampaign(home.root, row)),
    }),
    told: (error) =>
      error instanceof UserError || error instanceof OutsideFailure || error instanceof UnknownStartError
        ? error.message
        : undefined,
    log: note,
  });
  if (name !== undefined) await (await campaign(name))?.index.refresh();
  const listening = await listenAt(view, { host: '127.0.0.1', port: options.port });
  const url = `${listening.url}/${name === undefined ? '' : `${encodeURIComponent(name)}/`}?token=${token}`;
  const what = name ?? `the campaigns of ${home.root}`;
  print(options.json ? JSON.stringify({ url, campaign: name }) : `${url} shows ${what}; Ctrl-C ends it`);
  await new Promise<void>((resolve) => onInterrupt({ onFirst: resolve, onSecond: () => undefined }));
  await listening.close(1);
}
