/** All conversations of a campaign, and one of them: `campaign view` has them, a file has not. */
import { useEffect, useState } from 'preact/hooks';
import type { RolloutPage, ShownRollout } from '../../src/view/api';
import { wholeNumber } from '../../src/report/format';
import { Messages } from './blocks';
import { parsed } from './text';

interface Answer<T> {
  answer?: T;
  problem?: string;
}

/** Nothing until it has come, or where nothing is asked; `keeps`: till then what was there before. */
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

/** The first is in the index, the second reads all conversations that the other filters keep. */
const TEXTS = { text: 'Task, or how it begins', said: 'Said anywhere in it' };

export function Conversations({ query }: { query: string }) {
  const asked = new URLSearchParams(query);
  const { answer, problem } = useAnswer<RolloutPage>(`api/rollouts?${query}`, true);
  const figure = asked.get('figure');
  const go = (changes: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    if (!('page' in changes)) next.delete('page');
    window.location.hash = `conversations?${next}`;
  };
  if (!answer) return <Waits problem={problem} />;
  const { total, page, pages, rollouts } = answer;
  const offered = Object.entries(answer.facets).filter(([, values]) => values.length > 0);
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
                {value} ({wholeNumber(count)})
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
            , in the batches behind <code>{figure}</code> <a href="#conversations">all</a>
          </>
        )}
      </p>
      <div class="scroll" tabIndex={0} role="group" aria-label="Conversations">
        <table>
          <thead>
            <tr>
              {['task', 'of', 'attempt', 'outcome', 'ended by', 'steps', 'labels'].map((head) => (
                <th key={head}>{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rollouts.map((one) => (
              <tr key={one.id}>
                <td data-head="task">
                  <a href={`#conversation/${one.id}`}>{one.task}</a>
                </td>
                <td data-head="of">
                  <div>
                    {one.of} <span class="quiet">{one.purpose}</span>
                  </div>
                </td>
                <td data-head="attempt">{one.attempt}</td>
                <td data-head="outcome">{one.outcome}</td>
                <td data-head="ended by">{one.stop}</td>
                <td data-head="steps">{one.steps}</td>
                <td data-head="labels">{one.labels.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <p>
          <button type="button" disabled={page === 0} onClick={() => go({ page: `${page - 1}` })}>
            Before
          </button>{' '}
          <button type="button" disabled={page + 1 >= pages} onClick={() => go({ page: `${page + 1}` })}>
            Next
          </button>
        </p>
      )}
    </>
  );
}

const addressOf = (id: string | undefined) => id && `api/rollouts/${encodeURIComponent(id)}`;

/** One with the message that is named marked, or two beside each other with the first in which they differ: `KEY` or `KEY/KEY`. */
export function Conversation({ id, message }: { id: string; message: string | null }) {
  const [one, other] = id.split('/');
  const first = useAnswer<ShownRollout>(addressOf(one));
  const second = useAnswer<ShownRollout>(addressOf(other));
  useEffect(() => {
    if (message !== null && first.answer) document.querySelector('.cited')?.scrollIntoView({ block: 'center' });
  }, [message, first.answer]);
  const pair = [first.answer, second.answer].map((answer) => answer?.messages ?? []);
  const differs = pair[0]?.findIndex(({ role, text }, n) => role !== pair[1]?.[n]?.role || text !== pair[1][n]?.text);
  if (other === undefined) return <Shown {...first} marked={message === null ? undefined : Number(message)} />;
  return (
    <div class="beside">
      <Shown {...first} marked={differs} />
      <Shown {...second} marked={differs} />
    </div>
  );
}

const Facts = ({ facts }: Pick<ShownRollout, 'facts'>) => (
  <dl class="plain">
    {facts.map(({ name, value }) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

function Shown({ answer, problem, marked }: Answer<ShownRollout> & { marked?: number | undefined }) {
  if (!answer) return <Waits problem={problem} />;
  const { id, task, attempt, outcome, facts, madeFrom, messages, cited, others } = answer;
  return (
    <article>
      <h2>
        {task}, attempt {attempt}: {outcome}
      </h2>
      <Facts facts={facts} />
      <Messages
        messages={messages}
        cited={marked ?? cited[0]?.message}
        says={(message) => cited.flatMap((one) => (one.message === message ? [one.says] : []))}
      />
      <details class="fold">
        <summary>Made from</summary>
        <Facts facts={madeFrom} />
      </details>
      {others.length > 0 && (
        <details class="fold">
          <summary>Beside another attempt at this task ({others.length})</summary>
          <ul>
            {others.map(({ id: other, name }) => (
              <li key={other}>
                <a href={`#conversation/${id}/${other}`}>{name}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}
