/** All conversations of a campaign, and one of them. Only `campaign view` serves them. */
import { useEffect, useState } from 'preact/hooks';
import type { ListedRollout, RolloutPage, ShownRollout } from '../../src/view/api';
import { wholeNumber } from '../../src/report/format';
import { parsed } from './page';
import { type Column, Facts, Fold, List, Messages, Table } from './parts';

interface Answer<T> {
  answer?: T;
  problem?: string;
}

/** Returns the previous answer until another has come. */
function useAnswer<T>(address: string): Answer<T> {
  const [state, set] = useState<Answer<T>>({});
  useEffect(() => {
    const left = new AbortController();
    fetch(address, { signal: left.signal })
      .then(async (response) => {
        if (!response.ok) throw new Error(await response.text());
        set({ answer: parsed<T>(await response.text()) });
      })
      .catch((error: unknown) => !left.signal.aborted && set({ problem: String(error) }));
    return () => left.abort();
  }, [address]);
  return state;
}

const Waits = ({ problem }: { problem: string | undefined }) =>
  problem === undefined ? <p class="quiet">Reading …</p> : <p class="bad">{problem}</p>;

/** The first filter is answered from memory, the second reads all conversations that the other filters keep. */
const TEXTS = { text: 'Task, or how it begins', said: 'Said anywhere in it' };

/** Filters of the first list: the failures of the routed policy on test tasks. */
export const FAILURES = 'stage=test&arm=trace&outcome=failed';
/** The filters that keep everything. */
export const ALL = 'page=0';
const outcomes: Record<string, string> = { broken: 'failed (infrastructure)' };
/** Classes of outcomes and of reference actions; others are bad. */
const classes: Record<string, string> = { success: 'good', made: 'good', broken: 'quiet', extra: 'quiet' };

const rewardText = (reward: number | undefined) =>
  reward === undefined ? undefined : String(Number(reward.toFixed(3)));

const Outcome = ({ of }: { of: string }) => <span class={classes[of] ?? 'bad'}>{outcomes[of] ?? of}</span>;

export function Conversations({ query }: { query: string }) {
  const asked = new URLSearchParams(query);
  const { answer, problem } = useAnswer<RolloutPage>(`api/rollouts?${query}`);
  const figure = asked.get('figure');
  const go = (changes: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    if (!('page' in changes)) next.delete('page');
    window.location.hash = `conversations?${next.size > 0 ? next : ALL}`;
  };
  if (!answer) return <Waits problem={problem} />;
  const { total, page, pages, rollouts, facets } = answer;
  const offered = Object.entries(facets).filter(([, values]) => values.length > 1);
  const columns: Column<ListedRollout>[] = [
    ['task', ({ id, task }) => <a href={`#conversation/${id}?${query}`}>{task}</a>],
    ['outcome', ({ outcome }) => <Outcome of={outcome} />],
    ['reward', ({ reward }) => rewardText(reward)],
    ['begins', ({ snippet }) => <span class="quiet">{snippet}</span>],
    ['policy', ({ of, purpose, attempt }) => [of, purpose, `attempt ${attempt}`].filter(Boolean).join(', ')],
    ['ended by', ({ stop }) => stop.replaceAll('_', ' ')],
    ['lacks', ({ labels }) => labels.join(', ')],
  ];
  return (
    <>
      <div class="filters">
        {offered.map(([name, values]) => (
          <select
            key={name}
            aria-label={name}
            value={asked.get(name) ?? ''}
            onChange={({ currentTarget }) => go({ [name]: currentTarget.value })}
          >
            <option value="">{name}: all</option>
            {values.map(({ value, count }) => (
              <option key={value} value={value}>
                {outcomes[value] ?? value} ({wholeNumber(count)})
              </option>
            ))}
          </select>
        ))}
        {Object.entries(TEXTS).map(([name, what]) => (
          // Its key keeps what is typed while a live campaign is drawn again.
          <input
            key={`${name}=${asked.get(name)}`}
            type="search"
            aria-label={what}
            placeholder={what}
            defaultValue={asked.get(name) ?? ''}
            onChange={({ currentTarget }) => go({ [name]: currentTarget.value })}
          />
        ))}
      </div>
      <p class="quiet">
        {wholeNumber(total)} conversations{pages > 1 && `, page ${page + 1} of ${wholeNumber(pages)}`}
        {figure !== null && `, in the batches behind ${figure}`}
        {query !== ALL && <a href={`#conversations?${ALL}`}> all</a>}
      </p>
      <Table rows={rollouts} columns={columns} label="Conversations" />
      {pages > 1 && (
        <p>
          <button type="button" disabled={page === 0} onClick={() => go({ page: `${page - 1}` })}>
            Previous page
          </button>{' '}
          <button type="button" disabled={page + 1 >= pages} onClick={() => go({ page: `${page + 1}` })}>
            Next page
          </button>
        </p>
      )}
    </>
  );
}

/** `query` has the list's filters, and the message to scroll to. */
export function Conversation({ id, query }: { id: string; query: string }) {
  const filters = new URLSearchParams(query);
  const message = filters.get('message');
  filters.delete('message');
  const { answer, problem } = useAnswer<ShownRollout>(`api/rollouts/${encodeURIComponent(id)}?${filters}`);
  const { previous, next } = answer ?? {};
  const linkTo = (to: string) => `#conversation/${to}?${filters}`;
  useEffect(() => {
    if (message !== null && answer) document.querySelector('.cited')?.scrollIntoView({ block: 'center' });
  }, [message, answer]);
  useEffect(() => {
    const pressed = ({ key, target, ctrlKey, metaKey }: KeyboardEvent) => {
      const to = key === 'j' ? next : key === 'k' ? previous : undefined;
      if (to !== undefined && !ctrlKey && !metaKey && !(target instanceof HTMLInputElement))
        window.location.hash = linkTo(to);
    };
    window.addEventListener('keydown', pressed);
    return () => window.removeEventListener('keydown', pressed);
  }, [previous, next, String(filters)]);
  return (
    <>
      <p class="steps">
        {previous === undefined ? <span class="quiet">first</span> : <a href={linkTo(previous)}>previous (k)</a>}
        <a href={`#conversations?${filters.size > 0 ? filters : ALL}`}>list</a>
        {next === undefined ? <span class="quiet">last</span> : <a href={linkTo(next)}>next (j)</a>}
      </p>
      {answer ? (
        <Shown key={answer.id} shown={answer} marked={message === null ? undefined : Number(message)} />
      ) : (
        <Waits problem={problem} />
      )}
    </>
  );
}

function Shown({ shown, marked }: { shown: ShownRollout; marked: number | undefined }) {
  const { id, task, attempt, outcome, reward, facts, messages, cited, others, tools, reference } = shown;
  const [reason] = cited;
  return (
    <article>
      <h2>
        {task}, attempt {attempt}: <Outcome of={outcome} />
        {reward !== undefined && <span class="quiet"> reward {rewardText(reward)}</span>}
      </h2>
      {reason && (
        <p class="note">
          <a href={`#conversation/${id}?message=${reason.message}`}>message {reason.message}</a>: {reason.says}
        </p>
      )}
      {reference && <Actions actions={reference} />}
      {tools.length > 0 && (
        <Fold summary={`${tools.length} tools`}>
          {tools.map(({ name, description, parameters }) => (
            <Fold key={name} summary={name}>
              <p>{description}</p>
              <pre class="source" tabIndex={0}>
                {JSON.stringify(parameters, null, 2)}
              </pre>
            </Fold>
          ))}
        </Fold>
      )}
      <Messages
        messages={messages}
        cited={marked ?? reason?.message}
        notes={(message) => cited.flatMap((one) => (one.message === message ? [one.says] : []))}
      />
      <Facts facts={facts} />
      {others.length > 0 && <h3>Other attempts at this task</h3>}
      <List
        items={others.map(({ id: other, name }) => (
          <a href={`#conversation/${other}`}>{name}</a>
        ))}
      />
    </article>
  );
}

/** Reference actions beside the calls of the conversation. */
const Actions = ({ actions }: { actions: NonNullable<ShownRollout['reference']> }) => (
  <>
    {actions.every(({ expected }) => expected === undefined) && (
      <p>The reference solution changes nothing{actions.length > 0 && '; an extra call may be a look-up'}.</p>
    )}
    <Table
      label="Reference actions and calls"
      rows={actions}
      columns={[
        ['reference action', ({ expected }) => expected && <code>{expected}</code>],
        ['', ({ state }) => <Outcome of={state} />],
        ['call', ({ made }) => made && <code>{made}</code>],
      ]}
    />
  </>
);
