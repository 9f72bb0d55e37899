/** Makes an analysis of conversations, and of what a language model found in them. */
import type { Analysis as Asked } from '../../analyst/steps';
import type { SelectionRule } from '../../domain/campaign';
import { beginningOf } from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { groupBy, mean, successRate } from '../../domain/statistics';
import { quotedMessage } from '../../report/build/quotes';
import { selectionOf } from '../../report/build/selection';
import type { ReportedSelection } from '../../report/capability-model';
import type { Conversations } from './conversations';
import { differencesIn, isError, partingsIn } from './counts';
import type { AnalysedFailure, Analysis, Cause, Reading, ShownConversation } from './result';
import { FAULTS, NOT_EXPLAINED, sectionsOf } from './statements';
import type { AnalysisResult } from './steps';

/** Requests to the language model and its answers. */
export type Read = Pick<Reading, 'analyst' | 'budget' | 'spent'> & {
  analysis: Pick<Asked, 'store' | 'rollouts'>;
  rule: SelectionRule;
  result: AnalysisResult;
};

/** `read`: with a language model. */
export async function buildAnalysis(
  o: Pick<Analysis, 'name' | 'files'> & { conversations: Conversations; read?: Read | undefined },
): Promise<Analysis> {
  const { name, files, read } = o;
  const { rollouts, ids, counts: conversations, notes } = o.conversations;
  const found = withNames(
    {
      differences: differencesIn(rollouts),
      partings: partingsIn(rollouts),
      reading: read && (await readingOf(read, rollouts)),
      shown: shownOf(rollouts),
    },
    ids,
  );
  const analysis = { name, madeAt: new Date().toISOString(), files, conversations, notes, ...found };
  return { ...analysis, sections: sectionsOf(analysis) };
}

/** Replaces rollout keys, which stand as values and as keys of records, by the files' names of the conversations. */
function withNames<Value>(value: Value, ids: ReadonlyMap<string, string>): Value {
  const named = (inner: unknown): unknown => {
    if (typeof inner === 'string') return ids.get(inner) ?? inner;
    if (Array.isArray(inner)) return inner.map(named);
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, one]) => [ids.get(key) ?? key, named(one)]));
  };
  return named(value) as Value;
}

/** Characters of a message, and of all messages, on the page. */
const LONGEST = 1500;
const MOST = 8_000_000;

function shownOf(rollouts: readonly ScoredRollout[]): ShownConversation[] {
  let room = MOST;
  const inOrder = [...rollouts].sort((a, b) => Number(isSuccess(a)) - Number(isSuccess(b)));
  return inOrder.flatMap(({ key, task, reward, messages }) => {
    if (room <= 0) return [];
    const shown = messages.flatMap((one, n) => (one.role === 'system' ? [] : quotedMessage(one, n, LONGEST)));
    room -= shown.reduce((sum, { text }) => sum + text.length, 0);
    return { conversation: key, task, reward, messages: shown };
  });
}

async function readingOf(read: Read, records: readonly ScoredRollout[]): Promise<Reading> {
  const { rule, analyst, budget, spent } = read;
  const { selection: result, passes } = read.result;
  const selected = await selectionOf({ ...read.analysis, records, result, rule });
  const hasPassed = records.some(isSuccess);
  // Without passed conversations nothing shows that successes do not lack a candidate too.
  const selection = hasPassed
    ? selected
    : {
        ...selected,
        candidates: selected.candidates.map((one) => ({ ...one, selected: false })),
        reason: 'no conversation passed, so nothing shows that those that pass do not lack the same',
      };
  const causing = selected.candidates.filter((one) => one.selected || !hasPassed);
  const names = causing.map(({ name }) => name);
  const failures = records.filter((rollout) => !isSuccess(rollout)).map(failureIn(passes, names));
  const causes = causing
    .map((candidate) => causeOf(candidate, { records, failures, passes }))
    .filter(({ explains }) => hasPassed || explains.length > 0)
    .sort((a, b) => b.explains.length - a.explains.length);
  return { analyst, causes, failures, selection, budget, spent };
}

type Passes = AnalysisResult['passes'];

function causeOf(
  { name, definition }: ReportedSelection['candidates'][number],
  o: { records: readonly ScoredRollout[]; failures: readonly AnalysedFailure[]; passes: Passes },
): Cause {
  const readings = readingsOf(o.passes).get(name) ?? new Map<string, never>();
  const labels = [...readings.values()].map(majorityOf);
  const explained = o.failures.filter(({ explainedBy }) => explainedBy.includes(name));
  const explains = explained.map(({ conversation }) => conversation);
  const byTask = [...groupBy(o.records, ({ task }) => task).values()];
  const shares = byTask.map((own) => mean(own.map(({ key }) => Number(explains.includes(key)))));
  const atErrors = explained.filter(({ conversation, begins }) => {
    const { messages } = o.records.find(({ key }) => key === conversation)!;
    const near = begins ? messages.slice(Math.max(0, begins.message - 1), begins.message + 1) : [];
    return near.some(({ role, content }) => role === 'tool' && isError(content));
  });
  return {
    capability: name,
    definition,
    explains,
    worth: successRate({ taskMeans: shares, trials: Math.max(...byTask.map(({ length }) => length)) }),
    arises: labels.filter((label) => label !== 'NA').length,
    shown: labels.filter((label) => label === 'PRESENT').length,
    atErrors: atErrors.length,
  };
}

/** `causes`: names of capabilities. */
function failureIn(passes: Passes, causes: readonly string[]) {
  const readings = readingsOf(passes);

  const lackedBy = (key: string): AnalysedFailure['lacking'] =>
    [...readings]
      .flatMap(([capability, all]) => {
        const own = all.get(key) ?? [];
        const { lacking, message, says } = lackingIn(own);
        return says === undefined
          ? []
          : [{ capability, label: majorityOf(own), lacking, passes: own.length, message, says }];
      })
      .sort((a, b) => b.lacking - a.lacking || (a.capability < b.capability ? -1 : 1));

  return ({ key, task, reward, messages }: ScoredRollout): AnalysedFailure => {
    const lacking = lackedBy(key);
    const begins = beginningOf(passes.flatMap(({ failures }) => failures?.[key] ?? []));
    const lacked = lacking.flatMap(({ capability, label }) => (label === 'LACKING' ? capability : []));
    const known = lacked.filter((name) => causes.includes(name));
    const own = known.length > 0 ? known : [NOT_EXPLAINED];
    const explainedBy = !begins ? [] : begins.of === 'agent' ? own : [FAULTS[begins.of]];
    return { conversation: key, task, reward, messages: messages.length, lacking, begins, explainedBy };
  };
}
