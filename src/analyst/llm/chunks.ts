/**
 * Divides trajectories into chunks, one for each request. Each trajectory is in exactly one chunk. Attempts at one task with different outcomes are
 * adjacent, in one chunk if they fit. Failures and successes are spread over all chunks. Chunks depend on the shown trajectories alone.
 */
import { tokensOf } from '../../domain/endpoints';
import { badInput } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { groupBy } from '../../domain/statistics';
import { compactOne, type Lengths } from '../../domain/transcript';

/** Trajectories by the ids that the model knows: r1, r2, ... */
export type Shown = ReadonlyMap<string, ScoredRollout>;

interface Load {
  tokens: number;
  passed: number;
  failed: number;
}

interface Attempt {
  id: string;
  rollout: ScoredRollout;
  load: Load;
}
/** `attempts` of a unit stay in one chunk. */
interface Unit {
  attempts: readonly Attempt[];
  load: Load;
}

function unitOf(attempts: readonly Attempt[]): Unit {
  const sum = (of: keyof Load) => attempts.reduce((all, { load }) => all + load[of], 0);
  return { attempts, load: { tokens: sum('tokens'), passed: sum('passed'), failed: sum('failed') } };
}

const isMixed = ({ load }: Pick<Unit, 'load'>): boolean => load.passed > 0 && load.failed > 0;

/**
 * Returns chunks of at most `tokens`; the longest trajectory may have more where `room`, the most that a request can hold, allows it. `shown` is in the
 * order of tasks.
 */
export function contrastChunks(o: { shown: Shown; tokens: number; room: number; lengths: Lengths }): Shown[] {
  const { room, lengths } = o;
  const all = [...o.shown].map(([id, rollout]): Attempt => {
    const tokens = tokensOf(compactOne({ id, rollout, lengths }).length);
    if (tokens > room) throw tooLong(rollout, tokens, room);
    const passed = isSuccess(rollout) ? 1 : 0;
    return { id, rollout, load: { tokens, passed, failed: 1 - passed } };
  });
  const limit = Math.min(room, Math.max(o.tokens, ...all.map(({ load }) => load.tokens)));
  const tasks = [...groupBy(all, ({ rollout }) => rollout.task).values()].map(unitOf);
  const units = tasks.flatMap((task) =>
    isMixed(task) && task.load.tokens <= limit ? [task] : task.attempts.map((one) => unitOf([one])),
  );
  for (let count = Math.ceil(unitOf(all).load.tokens / limit); ; count++) {
    const chunks = deal(units, limit, count);
    if (chunks) return chunks;
  }
}

const tooLong = ({ task, attempt }: ScoredRollout, needed: number, room: number) =>
  badInput(
    `analyst.contextTokens leaves room for trajectories of ${room} tokens, and attempt ${attempt} at task ${task} has ${needed}; ` +
      `raise contextTokens by ${Math.ceil((needed - room) / 0.9)} or more, or lower maxTokens, messageChars or argumentChars`,
  );

/** Distributes units over `count` chunks: each is added where its outcome is rarest. Returns undefined if they do not fit. */
function deal(units: readonly Unit[], limit: number, count: number): Shown[] | undefined {
  const chunks = Array.from({ length: count }, () => ({ units: [] as Unit[], load: unitOf([]).load }));
  const ofOutcome = (outcome: 'passed' | 'failed') => units.filter((unit) => !isMixed(unit) && unit.load[outcome] > 0);
  const [passed, failed] = [ofOutcome('passed'), ofOutcome('failed')];
  const singles = passed.length < failed.length ? [...passed, ...failed] : [...failed, ...passed];
  for (const unit of [...units.filter(isMixed), ...singles]) {
    const by = isMixed(unit) ? 'tokens' : unit.load.passed > 0 ? 'passed' : 'failed';
    const [lightest] = chunks
      .filter(({ load }) => load.tokens + unit.load.tokens <= limit)
      .sort((a, b) => a.load[by] - b.load[by]);
    if (!lightest) return undefined;
    lightest.units.push(unit);
    for (const what of ['tokens', 'passed', 'failed'] as const) lightest.load[what] += unit.load[what];
  }
  return chunks.map((chunk) => shownIn(chunk.units));
}

/** Mixed tasks come first, then the other attempts with both outcomes spread evenly. */
function shownIn(units: readonly Unit[]): Shown {
  const singles = units.filter((unit) => !isMixed(unit));
  const mixed = units.filter(isMixed).flatMap(({ attempts }) => attempts);
  const others = [...groupBy(singles, ({ load }) => load.passed).entries()]
    .sort(([a], [b]) => b - a)
    .flatMap(([, own]) => own.map(({ attempts }, n) => ({ attempts, at: (n + 0.5) / own.length })))
    .sort((a, b) => a.at - b.at)
    .flatMap(({ attempts }) => attempts);
  return new Map([...mixed, ...others].map(({ id, rollout }) => [id, rollout]));
}
