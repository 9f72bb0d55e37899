/** `campaign export --rollouts`: rollouts of a campaign, which may still run, as JSON lines in the OpenAI form. */
import { appendFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openStore } from '../store/open-store';
import type { Message } from '../domain/messages';
import { toWellFormed } from '../domain/plain-text';
import type { Rollout } from '../domain/rollout';
import { replaceFolder } from '../gateway/whole-folder';
import { callsOf, toWireMessage, toWireTools } from '../policy/wire';
import { wholeNumber } from '../report/format';
import { batchesBehind } from '../report/lineage';
import { type Asked, filterNames, keptOf } from '../view/filter';
import { type IndexedBatch, type IndexedRollout, toolsOf } from '../view/rollouts';
import { invalidOption, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { findReport, reported } from './reports';
import { indexOf, named } from './view';

/** An earlier export is recognized by this file. */
const MARK = '.campaign-export.json';

/** Writes a file for each batch. @throws UserError */
export async function exportRollouts(
  name: string,
  dir: string,
  options: CommonOptions & { filter?: string[] },
): Promise<string> {
  const { filter = [] } = options;
  const { figure, ...asked } = askedOf(filter);
  const campaign = await named(name, options);
  const { root } = homeOf(options);
  const store = await openStore(root);
  const index = indexOf(store, root, campaign);
  await index.refresh();
  const report = reported(root).includes(campaign) ? findReport({ home: root, name: campaign })?.report : undefined;
  const behind = figure === undefined ? undefined : await batchesBehind({ store, start: figure, report });
  const rows = await keptOf(index, asked, behind);
  if (rows.length === 0)
    throw new UserError(
      `${campaign} has no rollouts${filter.length > 0 ? ` with ${filter.join(' ')}` : ''}; \`campaign view ${campaign}\` shows what there is`,
    );
  const folder = resolve(dir);
  const files = new Map<IndexedBatch, { name: string; tools: object[] }>();
  await replaceFolder({
    folder,
    mark: MARK,
    write: async (made) => {
      for await (const { one, rollout } of index.each(rows)) {
        const { batch } = one;
        const file = files.get(batch) ?? {
          name: fileName(batch, [...files.values()]),
          tools: toWireTools(await toolsOf(store, batch)),
        };
        files.set(batch, file);
        await appendFile(join(made, file.name), `${lineOf(rollout, { campaign, one, tools: file.tools })}\n`);
      }
      await writeFile(join(made, MARK), `${JSON.stringify({ campaign, filter })}\n`);
    },
  });
  const failed = rows.filter(({ outcome }) => outcome === 'broken').length;
  const note = failed > 0 ? `, ${wholeNumber(failed)} of them failed (infrastructure)` : '';
  return `${folder}: ${wholeNumber(rows.length)} rollouts${note}; files: ${files.size}`;
}

/** Batches may share a title, as after a retry. */
function fileName({ title, ref }: IndexedBatch, others: readonly { name: string }[]): string {
  const name = title.replace(/[^\w=+]+/g, '-').slice(0, 100);
  const isTaken = others.some((one) => one.name === `${name}.jsonl`);
  return isTaken ? `${name}-${ref.sha256.slice(0, 8)}.jsonl` : `${name}.jsonl`;
}

/** One rollout as JSON without halves of surrogate pairs, which strict readers refuse. */
function lineOf(
  rollout: Rollout,
  { campaign, one, tools }: { campaign: string; one: IndexedRollout; tools: object[] },
) {
  const { key: id, task, attempt } = rollout;
  const { batch, stop, labels } = one;
  const { purpose: stage, of: arm } = batch;
  const metadata = { campaign, stage, arm, batch: batch.ref.sha256, attempt, stop, labels };
  const line =
    rollout.status === 'broken'
      ? { id, task, error: rollout.error, metadata }
      : {
          ...{ id, task, messages: rollout.messages.map(toLineMessage), ...(tools.length > 0 && { tools }) },
          ...{ reward: rollout.reward, reference: rollout.reference, metadata },
        };
  return JSON.stringify(line, (_, value: unknown) => (typeof value === 'string' ? toWellFormed(value) : value));
}

/** A simulated user may call tools of its own, for which the dialect has no place: its calls stand where an assistant's do. */
const toLineMessage = (message: Message): object =>
  message.role === 'user' && message.toolCalls?.length
    ? { ...toWireMessage(message), tool_calls: callsOf(message) }
    : toWireMessage(message);

/** @throws UserError */
function askedOf(filter: readonly string[]): Asked {
  const known = [...filterNames, 'figure'];
  return Object.fromEntries(
    filter.map((one) => {
      const [name = '', ...value] = one.split('=');
      if (!known.includes(name) || value.join('=') === '')
        throw invalidOption('--filter', one, `give NAME=VALUE, where NAME is one of ${known.join(', ')}`);
      return [name, value.join('=')];
    }),
  );
}
