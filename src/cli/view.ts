/** `campaign view`: serves a campaign as a page on this machine, live and after its end. */
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '../store/durable-file';
import { openStore } from '../store/open-store';
import type { ArtifactStore } from '../store/store';
import { OutsideFailure } from '../domain/failures';
import { spentOf } from '../llm/spending';
import type { ApprovalView } from '../report/build/approval';
import { batchesBehind, UnknownStartError } from '../report/lineage';
import type { Report } from '../report/model';
import { completeReport } from '../report/render';
import { note, print } from '../terminal';
import { createCurves } from '../view/curves';
import type { CampaignPage } from '../view/api';
import { createView } from '../view/app';
import { createIndex, type RolloutIndex } from '../view/rollouts';
import { decideOn, shownApprovals } from './approvals';
import { campaignsOf, readStatus } from './campaign-status';
import { UserError } from './errors';
import { type CommonOptions, homeOf, namespace } from './options';
import { listenAt } from './ports';
import { type Home, makeHome } from './project';
import { findReport, reported } from './reports';
import { serverOf, uiOf } from './run/processes';
import { onInterrupt } from './run/supervisor';
import { addressOf, connect, type Temporal, withServer } from './temporal';
import { notesOf, Rates, runsText, stateOf, treeLines } from './watch/tree';

export interface ViewOptions extends CommonOptions {
  port: number;
}

export const indexOf = (store: ArtifactStore, root: string, campaign: string): RolloutIndex =>
  createIndex({ store, campaign, file: join(root, campaign, 'rollouts.jsonl') });

/** The campaign that is named, else the newest. @throws UserError */
export async function named(name: string | undefined, options: CommonOptions): Promise<string> {
  const names = await withServer(options, async (temporal) =>
    (await campaignsOf(temporal, options)).map((one) => one.name),
  );
  const known = [...new Set([...names, ...reported(homeOf(options).root)])];
  const [newest] = known;
  if (name !== undefined && known.includes(name)) return name;
  if (name === undefined && newest !== undefined) return newest;
  const which = name === undefined ? 'no campaign' : `no campaign ${name}`;
  throw new UserError(`there is ${which} in ${homeOf(options).root}; known: ${known.join(', ') || 'none'}`);
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

/** Until it is interrupted. @throws UserError */
export async function serveView(name: string | undefined, options: ViewOptions): Promise<void> {
  const campaign = await named(name, options);
  const home = homeOf(options);
  const store = await openStore(home.root);
  const index = indexOf(store, home.root, campaign);
  const curves = createCurves({ store, campaign, index });
  const rates = new Rates();
  const reportOf = () =>
    reported(home.root).includes(campaign) ? findReport({ home: home.root, name: campaign })?.report : undefined;
  let completed: { of: Report; report: Report } | undefined;
  const completedReport = (of: Report): Report => {
    if (completed?.of.campaign.finishedAt !== of.campaign.finishedAt) completed = { of, report: completeReport(of) };
    return completed.report;
  };

  // One connection serves all polls; a restarted server has another address.
  let held: { address: string; temporal: Temporal } | undefined;
  async function server(): Promise<Temporal | undefined> {
    const address = options.temporalAddress ?? serverOf(home);
    if (held && held.address !== address) {
      await held.temporal.close();
      held = undefined;
    }
    if (address === undefined || held) return held?.temporal;
    const temporal = await connect(addressOf(options), home).catch((error: unknown) => {
      if (error instanceof UserError && !options.temporalAddress) return undefined;
      throw error;
    });
    held = temporal && { address, temporal };
    return temporal;
  }

  async function status(temporal: Temporal | undefined) {
    await index.refresh();
    const { snapshot } = await readStatus(temporal, options, campaign);
    const now = Date.now();
    const ui = temporal && !options.temporalAddress ? uiOf(home) : undefined;
    const link = (id: string) => `${ui}/namespaces/${namespace()}/workflows/${encodeURIComponent(id)}`;
    const workflows = [campaign, ...(snapshot.progress?.children ?? []).map(({ workflowId }) => workflowId)];
    return {
      ...{ state: stateOf(snapshot), snapshot, tree: treeLines({ snapshot, rates, now }) },
      runs: runsText(snapshot, snapshot.asOf ?? now),
      notes: notesOf(snapshot),
      ...(ui && { links: Object.fromEntries(workflows.map((id) => [id, link(id)])) }),
    };
  }

  async function waiting(temporal: Temporal): Promise<ApprovalView[]> {
    return shownApprovals(temporal, campaign, store).catch((error: unknown) => {
      // Nothing can be decided where the campaign does not run, or no worker answers.
      if (error instanceof UserError) return [];
      throw error;
    });
  }

  async function readPage(): Promise<CampaignPage> {
    const temporal = await server();
    const found = reportOf();
    const { snapshot, links, ...now } = await status(temporal);
    const isRunning = snapshot.status === 'RUNNING';
    const isAsked = [snapshot, ...snapshot.children].some(({ progress }) => progress?.waiting);
    const waits = temporal && isRunning && isAsked ? await waiting(temporal) : [];
    // A campaign that has ended without a report has its state alone.
    const live = isRunning || !found;
    return {
      ...{ kind: 'campaign', title: campaign, served: true, isLive: isRunning },
      ...(found && { report: completedReport(found) }),
      ...(live && { live: { ...now, curves: await curves(), spent: await spentOf({ store, campaign }) } }),
      ...(waits.length > 0 && { approvals: waits }),
      ...(links && { links }),
    };
  }
  // All open pages poll.
  let last: { at: number; page: Promise<CampaignPage> } | undefined;
  const page = (): Promise<CampaignPage> => {
    if (!last || Date.now() - last.at > SHARED_MS) last = { at: Date.now(), page: readPage() };
    return last.page;
  };

  const token = await viewToken(home);
  const view = createView({
    ...{ index, store, token },
    page,
    decide: async (decision) => ({ decided: await decideOn(campaign, decision, options) }),
    behind: (start) => batchesBehind({ store, start, report: reportOf() }),
    told: (error) =>
      error instanceof UserError || error instanceof OutsideFailure || error instanceof UnknownStartError
        ? error.message
        : undefined,
    log: note,
  });
  await index.refresh();
  const listening = await listenAt(view, { host: '127.0.0.1', port: options.port });
  const url = `${listening.url}/?token=${token}`;
  const count = index.all().filter(({ isRepeated }) => !isRepeated).length;
  print(
    options.json
      ? JSON.stringify({ url, campaign, rollouts: count })
      : `${url} shows ${campaign}, ${count} rollouts; Ctrl-C ends it`,
  );
  await new Promise<void>((resolve) => onInterrupt({ onFirst: resolve, onSecond: () => undefined }));
  await listening.close(1);
  await held?.temporal.close();
}
