/**
 * Curves in TensorBoard, trackio and Weights & Biases: `campaign metrics`, and what `campaign run` does while a campaign runs. Invariant: whatever the
 * tools' process does (it is missing, fails, hangs, is killed), the campaign neither fails nor waits for it; it is said once.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { projectRoot } from '../artifacts/project-root';
import { digest } from '../artifacts/hash';
import { openStore } from '../artifacts/open-store';
import { keysNotedBy } from '../artifacts/usage';
import { runChecks } from '../checks/check';
import type { MetricsTool } from '../domain/work';
import { jsonText } from '../domain/messages';
import { paymentsOf } from '../language-model/ledger';
import { startChild } from '../environments/child-process';
import { programEnvironment } from '../policy/python';
import { createCurves, type Curve } from '../view/curves';
import { readStatus } from './campaign-status';
import { metricsChecks, metricsPython } from './checks/machine';
import { requireAll } from './doctor';
import { messageOf, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { onInterrupt } from './run/supervisor';
import { withServer } from './temporal';

const EVERY_MS = 10_000;
/** How long the end of a campaign waits for the last points. */
const END_MS = 30_000;

const answerSchema = z.object({
  tool: z.string().optional(),
  problem: z.string().optional(),
  written: z.record(z.string(), z.number()).optional(),
});

interface MirrorOptions {
  home: string;
  campaign: string;
  tools: readonly MetricsTool[];
  /** Each tool has a folder of its own in it. */
  out: string;
  note: (text: string) => void;
  everyMs?: number;
  endMs?: number;
}

/** Where a campaign's curves are unless another folder is named. */
export const metricsFolder = (home: string, campaign: string): string => join(home, campaign, 'metrics');

/** Keeps the tools at what the store has, until `end` is called: it writes the last points and says how many there were. */
export function mirrorCurves({ home, campaign, tools, out, note, everyMs = EVERY_MS, endMs = END_MS }: MirrorOptions) {
  const written: Record<string, number> = {};
  const shown = new Map<string, string>();
  const told = new Set<string>();
  const ending = new AbortController();
  let writer: Writer | undefined;
  const say = (text: string): void => {
    if (!told.has(text)) note(text);
    told.add(text);
  };

  const tell = (problems: readonly Problem[] = []): void => {
    for (const { tool, problem } of problems) say(`${tool ?? 'all tools'}: no more curves are written: ${problem}`);
  };

  async function begin() {
    const store = await openStore(home);
    const key = digest([await store.id(), campaign]).slice(0, 8);
    const payments = () => paymentsOf({ store, campaign });
    writer = startWriter({ campaign, key, tools, out });
    return createCurves({ store, home, campaign, payments });
  }

  async function show(curve: Curve): Promise<void> {
    const text = JSON.stringify(curve);
    if (shown.get(curve.run) === text) return;
    tell(await writer?.show(text, written));
    shown.set(curve.run, text);
  }

  async function run(): Promise<void> {
    const curves = await begin();
    while (writer?.isUp()) {
      const isLast = ending.signal.aborted;
      try {
        for (const curve of await curves()) await show(curve);
      } catch (error) {
        // The store is away, say: the next look may find it.
        say(`curves are not up to date: ${messageOf(error)}`);
      }
      if (isLast) break;
      await sleep(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  }

  const running = run()
    .catch((error: unknown) => say(`no curves are written: ${messageOf(error)}`))
    .finally(async () => tell(await writer?.close()));
  return {
    async end(): Promise<Record<string, number>> {
      ending.abort();
      const late = new AbortController();
      const isLate = await Promise.race([
        running.then(() => false),
        sleep(endMs, true, { signal: late.signal, ref: false }).catch(() => true),
      ]);
      late.abort();
      if (isLate) {
        writer?.kill();
        say(`the last curves were not written within ${endMs / 1000} s; \`campaign metrics ${campaign}\` writes them`);
      }
      return written;
    },
  };
}

interface Problem {
  /** Undefined where it is the process that has ended. */
  tool?: string | undefined;
  problem: string;
}
type Writer = ReturnType<typeof startWriter>;

/** The process that writes: trainer/metrics.py. Ctrl-C is for this process alone, which then writes the last points. */
function startWriter(o: { campaign: string; key: string; tools: readonly MetricsTool[]; out: string }) {
  const { campaign, key, tools, out } = o;
  const named = tools.flatMap((tool) => ['--tool', tool]);
  const args = ['-m', 'trainer', 'metrics', '--out', resolve(out), '--campaign', campaign, '--key', key, ...named];
  const problems: Problem[] = [];
  let [isUp, isEnding, isTold] = [true, false, false];
  let hasEnded = (): void => undefined;
  const ended = new Promise<void>((done) => (hasEnded = done));
  const down = (why: string): void => {
    isUp = false;
    if (!isEnding && !isTold) problems.push({ problem: `${why}; \`campaign metrics ${campaign}\` writes the rest` });
    hasEnded();
  };
  let answered: ((written: Record<string, number>) => void) | undefined;
  const read = (line: string): void => {
    const { tool, problem, written } = jsonText.pipe(answerSchema).safeParse(line).data ?? {};
    if (problem !== undefined) problems.push({ tool, problem });
    isTold ||= problem !== undefined && tool === undefined;
    if (written) answered?.(written);
  };
  const child = startChild({
    command: [metricsPython(), ...args],
    cwd: projectRoot,
    variables: programEnvironment(),
    keys: toolsEnvironment(),
    readOutput: (input) => createInterface({ input }).on('line', read),
    onEnd: (how) => down(child.stderr().split('\n').at(-1) || `ended with ${how}`),
    onStartFailure: down,
  });
  return {
    isUp: () => isUp,
    /** Resolves with what has gone wrong since. */
    async show(curve: string, counts: Record<string, number>) {
      const answer = new Promise<Record<string, number>>((done) => (answered = done));
      child.send(curve);
      const written = await Promise.race([answer, ended]);
      for (const [tool, count] of Object.entries(written ?? {})) counts[tool] = (counts[tool] ?? 0) + count;
      return problems.splice(0);
    },
    /** Resolves with what has gone wrong since, once it has ended. */
    async close() {
      isEnding = isUp;
      child.endInput();
      await ended;
      return problems.splice(0);
    },
    /** With all that it has started. */
    kill: child.kill,
  };
}

/** What these tools are set up with is their own, keys among it. */
const toolsEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(WANDB|TRACKIO|HF)_/.test(name)));

export interface MetricsOptions extends CommonOptions {
  to: MetricsTool[];
  out?: string;
  follow?: boolean;
}

/** `campaign metrics`. @throws UserError */
export async function writeMetrics(campaign: string, options: MetricsOptions): Promise<string> {
  const { to: tools, follow } = options;
  const home = homeOf(options).root;
  const out = options.out ?? metricsFolder(home, campaign);
  const isKnown = existsSync(home) || process.env['CAMPAIGN_STORE'] !== undefined;
  const noted = isKnown ? await keysNotedBy(await openStore(home), campaign) : [];
  if (noted.length === 0)
    throw new UserError(
      `the store of ${home} has nothing of a campaign ${campaign}; \`campaign list\` names those that there are`,
    );
  requireAll((await runChecks(metricsChecks(tools))).map((check) => ({ ...check, ok: !check.warning })));
  const problems: string[] = [];
  const mirror = mirrorCurves({ home, campaign, tools, out, note: (text) => problems.push(text) });
  if (follow) await followed(campaign, options);
  const written = await mirror.end();
  if (problems.length > 0) throw new UserError(problems.join('\n'));
  if (options.json) return JSON.stringify({ out: resolve(out), written });
  return tools.map((tool) => `${tool}: ${written[tool] ?? 0} new points in ${join(resolve(out), tool)}`).join('\n');
}

/** Until the campaign has ended, or Ctrl-C. */
async function followed(campaign: string, options: CommonOptions): Promise<void> {
  const { signal, dispose } = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  while (!signal.aborted) {
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
    const read = withServer(options, async (temporal) => (await readStatus(temporal, options, campaign)).snapshot);
    const snapshot = await read.catch(() => undefined); // it is somewhere else, or its server is away
    if (snapshot && snapshot.status !== 'RUNNING') break;
  }
  dispose();
}
