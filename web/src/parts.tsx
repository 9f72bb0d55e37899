/** What all views are made of: texts, figures that open to their lineage, messages of conversations, tables. Texts are never parsed as markup. */
import { type ComponentChildren, Fragment } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type { ArtifactRef, Figure } from '../../src/domain/artifacts';
import type { ReportedCitation, ReportedMessage } from '../../src/report/capability-model';
import type { VerdictSentence } from '../../src/report/model';
import {
  beginningOf,
  messageRoles,
  MISSING,
  shortId,
  shortPercent,
  shortSha,
  spreadText,
  TEST,
  testText,
  valueText,
  wholeNumber,
} from '../../src/report/format';
import { PlaceContext } from './page';

/** A text that may break at the joints of long names. */
export const Text = ({ text }: { text: string }) => (
  <>
    {text.split(/(?<=\w[_+])(?=\w)/).map((part, n) => (
      <Fragment key={n}>
        {n > 0 && <wbr />}
        {part}
      </Fragment>
    ))}
  </>
);

export const Quiet = ({ children }: { children: ComponentChildren }) => <p class="quiet">{children}</p>;

/** Shows nothing without content. */
export const Section = ({ title, id, children }: { title: string; id?: string; children: ComponentChildren }) => (
  <section id={id}>
    <h2>{title}</h2>
    {children}
  </section>
);

interface FoldProps {
  summary: ComponentChildren;
  open?: boolean;
  id?: string;
  children: ComponentChildren;
}
export const Fold = ({ summary, open = false, id, children }: FoldProps) => (
  <details class="fold" id={id} open={open}>
    <summary>{summary}</summary>
    <div>{children}</div>
  </details>
);

/** Leads from a figure's id or an artifact's sha256 to its rollouts. */
function Behind({ start }: { start: string }) {
  const { campaign, served } = useContext(PlaceContext);
  if (campaign === undefined) return null;
  if (!served) return <code>{`campaign show ${start} --campaign ${campaign}`}</code>;
  return <a href={`#conversations?figure=${encodeURIComponent(start)}`}>the conversations behind {shortId(start)}</a>;
}

/** The figures and artifacts that a sentence rests on. */
export function From({ of }: { of: readonly (ArtifactRef | string)[] }) {
  const { campaign } = useContext(PlaceContext);
  if (of.length === 0 || campaign === undefined) return null;
  return (
    <details class="lineage">
      <summary>from</summary>
      {of.map((one, n) => (
        <p key={n}>
          <Behind start={typeof one === 'string' ? one : one.sha256} />
        </p>
      ))}
    </details>
  );
}

/** A sentence of the verdict, with what it rests on. */
export const Sentence = ({ of: { text, behind } }: { of: VerdictSentence }) => (
  <>
    {text} <From of={behind} />
  </>
);

/** A figure with its interval and n, which opens to its method, lineage and artifacts. */
export function Num({ of: figure }: { of: Figure }) {
  const { id, n, unit, interval, test, from } = figure;
  // The n of a count is the count.
  const isCount = unit === 'count' || unit === 'tokens';
  const spread = [spreadText(figure), isCount ? '' : `n ${wholeNumber(n)}`].filter(Boolean).join(' · ');
  return (
    <details class="figure">
      <summary>
        <b>{valueText(figure)}</b>
        {spread !== '' && <span class="quiet">{spread}</span>}
      </summary>
      <div>
        {interval && (
          <p>
            {shortPercent(interval.level)} interval, {interval.method}
          </p>
        )}
        {test && (
          <p>
            {testText(figure)} ({TEST})
          </p>
        )}
        <p>
          <Behind start={id} />
        </p>
        {from.map(({ sha256, mediaType }) => (
          <p key={sha256}>
            artifact <code title={sha256}>{shortSha(sha256)}</code> {mediaType}
          </p>
        ))}
      </div>
    </details>
  );
}

/** Characters of a text that are shown before it is opened. */
const SHORT = 300;

/** `missing` characters are not in the report. */
export function Long({ text, missing = 0 }: { text: string; missing?: number | undefined }) {
  const rest = missing > 0 && <span class="quiet"> … {wholeNumber(missing)} more characters are in the artifact</span>;
  if (text.length <= SHORT)
    return (
      <>
        <Text text={text} />
        {rest}
      </>
    );
  return (
    <details class="long">
      <summary>
        <span>{beginningOf(text, SHORT)}… </span>
        <span class="quiet">all {wholeNumber(text.length + missing)} characters</span>
      </summary>
      {text}
      {rest}
    </details>
  );
}

interface MessagesProps {
  messages: readonly ReportedMessage[];
  cited?: number | undefined;
  /** Notes on a message. */
  notes?: (message: number) => string[];
}

/** Messages of a conversation. The system prompt is collapsed. */
export const Messages = ({ messages, cited, notes }: MessagesProps) => (
  <ol class="messages">
    {messages.map(({ message, role, text, missing }) => (
      <li key={message} class={`${role}${message === cited ? ' cited' : ''}`}>
        <span class="quiet">
          {message} {messageRoles[role]}
        </span>
        <div class="said">
          {role === 'system' ? (
            <details>
              <summary class="quiet">system prompt, {wholeNumber(text.length)} characters</summary>
              {text}
            </details>
          ) : (
            <Long text={text} missing={missing} />
          )}
          {notes?.(message).map((one) => (
            <p key={one} class="note">
              {one}
            </p>
          ))}
        </div>
      </li>
    ))}
  </ol>
);

function RolloutLink({ id, message }: { id: string; message?: number | undefined }) {
  const { served } = useContext(PlaceContext);
  const at = message === undefined ? '' : `?message=${message}`;
  const name = <Text text={shortId(id)} />;
  return served ? <a href={`#conversation/${id}${at}`}>{name}</a> : <code title={id}>{name}</code>;
}

type Trajectory = Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'> & { message?: number | undefined };

/** `3ab0c1d2 task 12, attempt 0, failed, message 4`. */
export function TrajectoryName({ of, also }: { of: Trajectory; also?: string | undefined }) {
  const { rollout, task, attempt = 0, outcome, message } = of;
  // A conversation that names no task is a task of its own.
  const which = task === rollout ? [] : [`task ${task}`, `attempt ${attempt}`];
  const known = task === undefined ? ['not among the labeled rollouts'] : [...which, outcome];
  const at = message === undefined ? undefined : `message ${message}`;
  return (
    <>
      <RolloutLink id={rollout} message={message} /> {[...known, at, also].filter(Boolean).join(', ')}
    </>
  );
}

/** A cited step, which opens to the message and its neighbours. */
export const Citation = ({ of, also, open }: { of: ReportedCitation; also?: string; open?: boolean }) => (
  <Fold
    open={open ?? false}
    summary={
      <>
        {of.says}{' '}
        <span class="quiet">
          – <TrajectoryName of={of} also={also} />
        </span>
      </>
    }
  >
    {of.context.length > 0 && <Messages messages={of.context} cited={of.message} />}
  </Fold>
);

/** `name: value` lines. */
export const Facts = ({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) => (
  <dl class="plain">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

/** A text, a number or a figure is shown in its own way, and its column is sorted by it. */
type Cell = ComponentChildren | Figure;

/** `order` is what the rows are sorted by where the cell does not say it. */
export type Column<Row> = readonly [head: string, cell: (row: Row) => Cell, order?: (row: Row) => number | string];

const isFigure = (cell: Cell): cell is Figure => typeof cell === 'object' && cell !== null && 'from' in cell;

function shownCell(cell: Cell): ComponentChildren {
  if (cell === undefined || cell === '') return MISSING;
  if (isFigure(cell)) return <Num of={cell} />;
  if (typeof cell === 'number') return wholeNumber(cell);
  return typeof cell === 'string' ? <Long text={cell} /> : cell;
}

/** Returns undefined of a cell that is markup. */
function orderOf(cell: Cell): number | string | undefined {
  if (isFigure(cell)) return cell.value ?? -Infinity;
  if (cell === undefined) return -Infinity;
  return typeof cell === 'string' ? cell.toLowerCase() : typeof cell === 'number' ? cell : undefined;
}

interface TableProps<Row> {
  rows: readonly Row[];
  columns: readonly (Column<Row> | false)[];
  /** Its heading; `label` where another heading is above it. */
  title?: string;
  label?: string;
  classOf?: (row: Row) => string;
  /** Notes below it. */
  children?: ComponentChildren;
}

/** A table that is sorted by a click on a head. On narrow screens a row is a card. Shows nothing without rows. */
export function Table<Row>({ rows, columns, title, label = title, classOf, children }: TableProps<Row>) {
  const [sorted, sort] = useState<{ head: string; isUp: boolean }>();
  const shown = columns.filter((column) => column !== false);
  const keyOf = ([, cell, order]: Column<Row>, row: Row) => (order ? order(row) : orderOf(cell(row)));
  const by = shown.find(([head]) => head === sorted?.head);
  const compare = (a: Row, b: Row): number => {
    const [one, other] = [keyOf(by!, a) ?? '', keyOf(by!, b) ?? ''];
    // Of numbers and texts in one column the numbers come first.
    if (typeof one !== typeof other) return typeof one === 'number' ? -1 : 1;
    return one < other ? -1 : one > other ? 1 : 0;
  };
  const inOrder = by ? [...rows].sort((a, b) => (sorted!.isUp ? compare(a, b) : compare(b, a))) : rows;
  if (rows.length === 0) return null;
  const table = (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {shown.map((column) => {
              const [head] = column;
              const key = keyOf(column, rows[0]!);
              const isSorted = sorted?.head === head;
              return (
                <th key={head} aria-sort={isSorted ? (sorted.isUp ? 'ascending' : 'descending') : undefined}>
                  {key === undefined ? (
                    head
                  ) : (
                    <button
                      type="button"
                      // The largest numbers come first.
                      onClick={() => sort({ head, isUp: isSorted ? !sorted.isUp : typeof key === 'string' })}
                    >
                      {head}
                      {isSorted && (sorted.isUp ? ' ↑' : ' ↓')}
                    </button>
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {inOrder.map((row) => (
            <tr key={rows.indexOf(row)} class={classOf?.(row)}>
              {shown.map(([head, cell]) => (
                <td key={head} data-head={head}>
                  <div>{shownCell(cell(row))}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
  if (title === undefined) return table;
  return (
    <Section title={title}>
      {table}
      {children}
    </Section>
  );
}
