/** All conversations of a campaign, and one of them. Only `campaign view` serves them. */
import { useEffect, useState } from 'preact/hooks';
import type { ListedRollout, RolloutPage, ShownRollout } from '../../src/view/api';
import { wholeNumber } from '../../src/report/format';
import { parsed } from './page';
import { type Column, Facts, Fold, Messages, Table } from './parts';

interface Answer<T> {
  answer?: T;
  problem?: string;
}

/** Returns nothing until the answer has come; with `keeps`, the previous answer until then. */
function useAnswer<T>(address: string | undefined, keeps = false): Answer<T> {
  const [state, set] = useState<Answer<T> & { of: string | undefined }>({ of: undefined });
  useEffect(() => {
    if (address === undefined) return undefined;
    const left = new AbortController();
    fetch(address, { signal: left.signal })
      .then(async (response) => {
        if (!response.ok) throw new Error(await response.text());
        set({ of: address, answer: parsed<T>(await response.text()) });
      })
      .catch((error: unknown) => !left.signal.aborted && set({ of: address, problem: String(error) }));
    return () => left.abort();
  }, [address]);
  return state.of === address || keeps ? state : {};
}

const Waits = ({ problem }: { problem: string | undefined }) =>
  problem === undefined ? <p class="quiet">Reading …</p> : <p class="bad">{problem}</p>;

/** The first filter is answered from the index, the second reads all conversations that the other filters keep. */
const TEXTS = { text: 'Task, or how it begins', said: 'Said anywhere in it' };

/** The first list: the failures of the routed policy on test tasks. */
const FIRST = { stage: 'test', arm: 'trace', outcome: 'failed' };
const outcomes: Record<string, string> = { broken: 'failed (infrastructure)' };

const rewardText = (reward: number | undefined) =>
  reward === undefined ? undefined : String(Number(reward.toFixed(3)));

export const Outcome = ({ of }: { of: string }) => <span class={`outcome ${of}`}>{outcomes[of] ?? of}</span>;

export function Conversations({ query }: { query: string }) {
  const asked = new URLSearchParams(query);
  const { answer, problem } = useAnswer<RolloutPage>(`api/rollouts?${query}`, true);
  const figure = asked.get('figure');
  const isFirst = query === '' && answer !== undefined && hasFirst(answer);
  useEffect(() => {
    if (isFirst) window.location.replace(`#conversations?${new URLSearchParams(FIRST)}`);
  }, [isFirst]);
  const go = (changes: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    if (!('page' in changes)) next.delete('page');
    window.location.hash = `conversations?${next.size > 0 ? next : 'page=0'}`;
  };
  if (!answer || isFirst) return <Waits problem={problem} />;
  const { total, page, pages, rollouts, facets } = answer;
  const offered = Object.entries(facets).filter(([, values]) => values.length > 1);
  const columns: Column<ListedRollout>[] = [
    ['task', ({ id, task }) => <a href={`#conversation/${id}?${query}`}>{task}</a>],
    ['outcome', ({ outcome }) => <Outcome of={outcome} />],
    ['reward', ({ reward }) => rewardText(reward), ({ reward }) => reward ?? -1],
    ['begins', ({ snippet }) => <span class="quiet">{snippet}</span>],
    [
      'policy',
      ({ of, purpose, attempt }) => (
        <>
          {of}{' '}
          <span class="quiet">
            {purpose}, attempt {attempt}
          </span>
        </>
      ),
    ],
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
          <input
            key={name}
            type="search"
            aria-label={what}
            placeholder={what}
            value={asked.get(name) ?? ''}
            onChange={({ currentTarget }) => go({ [name]: currentTarget.value })}
          />
        ))}
      </div>
      <p class="quiet">
        {wholeNumber(total)} conversations{pages > 1 && `, page ${page + 1} of ${wholeNumber(pages)}`}
        {figure !== null && (
          <>
            , in the batches behind <code>{figure}</code>
          </>
        )}
        {query !== 'page=0' && (
          <>
            {' '}
            <a href="#conversations?page=0">all</a>
          </>
        )}
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

const hasFirst = ({ facets }: RolloutPage): boolean =>
  Object.entries(FIRST).every(([name, wanted]) => facets[name]?.some(({ value }) => value === wanted));

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
        {previous === undefined ? <span class="quiet">first</span> : <a href={linkTo(previous)}>← previous (k)</a>}
        <a href={`#conversations?${filters.size > 0 ? filters : 'page=0'}`}>list</a>
        {next === undefined ? <span class="quiet">last</span> : <a href={linkTo(next)}>next (j) →</a>}
      </p>
      {answer ? (
        <Shown shown={answer} marked={message === null ? undefined : Number(message)} />
      ) : (
        <Waits problem={problem} />
      )}
    </>
  );
}

function Shown({ shown, marked }: { shown: ShownRollout; marked: number | undefined }) {
  const { id, task, attempt, outcome, reward, facts, madeFrom, messages, cited, others, tools, reference } = shown;
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
      <Facts facts={facts.map(({ name, value }) => [name, value])} />
      <Fold summary="Made from">
        <Facts facts={madeFrom.map(({ name, value }) => [name, value])} />
      </Fold>
      {others.length > 0 && (
        <Fold summary={`Other attempts at this task (${others.length})`}>
          <ul>
            {others.map(({ id: other, name }) => (
              <li key={other}>
                <a href={`#conversation/${other}`}>{name}</a>
              </li>
            ))}
          </ul>
        </Fold>
      )}
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
        ['', ({ state }) => <span class={`outcome ${state}`}>{state}</span>],
        ['call', ({ made }) => made && <code>{made}</code>],
      ]}
    />
  </>
);
