/** A page of a campaign's rollouts: those that all filters keep. Where several batches hold a rollout it is listed once. */
import { countsOf } from '../domain/statistics';
import type { RolloutPage } from './api';
import { type IndexedRollout, listed, type RolloutIndex } from './rollouts';

const PAGE = 50;
/** Values of one filter that a page offers, the commonest first. */
const OFFERED = 500;

/** The values of a rollout that each filter compares with, by the filter's name. */
const values: Record<string, (one: IndexedRollout) => string[]> = {
  stage: ({ batch }) => [batch.purpose],
  arm: ({ batch }) => [batch.of],
  task: ({ task }) => [task],
  attempt: ({ attempt }) => [String(attempt)],
  outcome: ({ outcome }) => [outcome],
  stop: ({ stop }) => [stop],
  label: ({ labels }) => labels,
  branch: ({ branch }) => (branch === undefined ? [] : [branch]),
  chosen: ({ chosen }) => (chosen === undefined ? [] : [chosen]),
};

type Asked = Readonly<Record<string, string | undefined>>;

/** Returns a page of the rollouts that all filters keep, and only those of `batches` where it is given. */
export async function pageOf(index: RolloutIndex, asked: Asked, batches?: ReadonlySet<string>): Promise<RolloutPage> {
  const kept = await keptOf(index, asked, batches);
  const pages = Math.max(1, Math.ceil(kept.length / PAGE));
  const page = Math.min(pages - 1, Math.max(0, Math.floor(Number(asked['page'] ?? 0)) || 0));
  const rollouts = kept.slice(page * PAGE, (page + 1) * PAGE).map(listed);
  return { total: kept.length, page, pages, rollouts, facets: facetsOf(index) };
}

/** The rollouts before and after one in the list of the same filters. */
export async function neighboursOf(
  index: RolloutIndex,
  { id, ...asked }: Asked & { id: string },
  batches?: ReadonlySet<string>,
): Promise<{ previous?: string; next?: string }> {
  const kept = await keptOf(index, asked, batches);
  const at = kept.findIndex((one) => one.id === id);
  const [previous, next] = at < 0 ? [] : [kept[at - 1]?.id, kept[at + 1]?.id];
  return { ...(previous !== undefined && { previous }), ...(next !== undefined && { next }) };
}

/**
 * Returns the rollouts that all filters keep, each once. `text` is searched in the task, the beginning of the conversation and the id's beginning, all in
 * memory; `said` is searched in the whole conversations, which are read.
 */
export async function keptOf(
  index: RolloutIndex,
  asked: Asked,
  batches?: ReadonlySet<string>,
): Promise<IndexedRollout[]> {
  const kept = once(index.all().filter(keeping(asked, batches)));
  if (!asked['said']) return kept;
  const saying = await index.saying(asked['said'].toLowerCase(), kept);
  return kept.filter(({ id }) => saying.has(id));
}

function keeping(asked: Asked, batches: ReadonlySet<string> | undefined): (one: IndexedRollout) => boolean {
  const wanted = Object.entries(values).flatMap(([name, of]) => {
    const value = asked[name];
    return value ? [(one: IndexedRollout) => of(one).includes(value)] : [];
  });
  if (batches) wanted.push((one) => batches.has(one.batch.ref.sha256));
  const text = asked['text']?.toLowerCase();
  if (text)
    wanted.push((one) => one.text.includes(text) || one.task.toLowerCase().includes(text) || one.id.startsWith(text));
  return (one) => wanted.every((test) => test(one));
}

/** Keeps one row of each rollout that several batches hold: the row that the index shows, if it is among them, else the first. */
function once(rows: readonly IndexedRollout[]): IndexedRollout[] {
  if (rows.every(({ isRepeated }) => !isRepeated)) return [...rows];
  const shown = new Map<string, IndexedRollout>();
  for (const row of rows) if (!row.isRepeated || !shown.has(row.id)) shown.set(row.id, row);
  return [...shown.values()];
}

/** Made once: a comparison that makes its own takes a hundred times as long. */
const inOrder = new Intl.Collator('en', { numeric: true }).compare;

const known = new WeakMap<RolloutIndex, { version: number; facets: RolloutPage['facets'] }>();

function facetsOf(index: RolloutIndex): RolloutPage['facets'] {
  const before = known.get(index);
  if (before?.version === index.version()) return before.facets;
  const rows = index.all().filter(({ isRepeated }) => !isRepeated);
  const facets = Object.fromEntries(
    Object.entries(values).map(([name, of]) => {
      const counts = countsOf((name === 'stage' || name === 'arm' ? index.all() : rows).flatMap(of));
      const sorted = [...counts].sort(([a, n], [b, m]) => m - n || inOrder(a, b));
      return [name, sorted.slice(0, OFFERED).map(([value, count]) => ({ value, count }))];
    }),
  );
  known.set(index, { version: index.version(), facets });
  return facets;
}
