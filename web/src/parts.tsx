/** Parts that all views share: texts, figures that open to their lineage, messages of conversations, tables. Texts are never parsed as markup. */
import type { ComponentChildren } from 'preact';
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

export const Quiet = ({ children }: { children: ComponentChildren }) => <p class="quiet">{children}</p>;

export const Section = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
);

export const List = ({ items, ...list }: { items: readonly ComponentChildren[]; class?: string }) => (
  <ul {...list}>
    {items.map((item, n) => (
      <li key={n}>{item}</li>
    ))}
  </ul>
);

interface FoldProps {
  summary: ComponentChildren;
  open?: boolean;
  id?: string;
  children: ComponentChildren;
}
/** Its content is made once it is opened: a page may hold thousands of messages. */
export function Fold({ summary, open = false, id, children }: FoldProps) {
  const [isMade, setMade] = useState(open);
  return (
    <details class="fold" id={id} open={open} onToggle={() => setMade(true)}>
      <summary>{summary}</summary>
      <div>{isMade && children}</div>
    </details>
  );
}

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

/** A sentence of the verdict, with its evidence. */
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
        {text}
        {rest}
      </>
    );
  const beginning = beginningOf(text, SHORT);
  return (
    <Fold summary={`${beginning}…`}>
      {text.slice(beginning.length)}
      {rest}
    </Fold>
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
            <Fold summary={`system prompt, ${wholeNumber(text.length)} characters`}>{text}</Fold>
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
  const name = shortId(id);
  return served ? <a href={`#conversation/${id}${at}`}>{name}</a> : <code title={id}>{name}</code>;
}

/** `task 12, attempt 0, failed, message 4, lacking in 3 of 6 passes`. */
function trajectoryText({ rollout, task, attempt = 0, outcome, message, votes }: ReportedCitation): string {
  // A conversation that names no task is a task of its own.
  const which = task === rollout ? [] : [`task ${task}`, `attempt ${attempt}`];
  const known = task === undefined ? ['not among the labeled rollouts'] : [...which, outcome];
  return [...known, message === undefined ? '' : `message ${message}`, votes].filter(Boolean).join(', ');
}

/** A cited step, which opens to the message and its neighbours. A summary holds no link: both would answer a click. */
export const Citation = ({ of }: { of: ReportedCitation }) => (
  <Fold
    summary={
      <>
        {of.says} <span class="quiet">– {trajectoryText(of)}</span>
      </>
    }
  >
    <p>
      conversation <RolloutLink id={of.rollout} message={of.message} />
    </p>
    {of.context.length > 0 && <Messages messages={of.context} cited={of.message} />}
  </Fold>
);

/** `name: value` lines; those without a value are left out. */
export const Facts = ({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) => (
  <dl class="plain">
    {facts.map(
      ([name, value]) =>
        value !== undefined && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
);

/** `links`: addresses in Temporal's UI. */
export const Workflows = ({
  ids,
  links = {},
}: {
  ids: readonly string[];
  links: Record<string, string> | undefined;
}) => (
  <Section title="Workflows in Temporal">
    <List items={ids.map((id) => (links[id] === undefined ? <code>{id}</code> : <a href={links[id]}>{id}</a>))} />
    {Object.keys(links).length === 0 && (
      <Quiet>
        <code>campaign ui</code> opens Temporal’s UI.
      </Quiet>
    )}
  </Section>
);

/** A text, a number or a figure is shown in its own way. */
type Cell = ComponentChildren | Figure;

export type Column<Row> = readonly [head: string, cell: (row: Row) => Cell];

function shownCell(cell: Cell): ComponentChildren {
  if (cell === undefined || cell === '') return MISSING;
  if (typeof cell === 'number') return wholeNumber(cell);
  if (typeof cell === 'string') return <Long text={cell} />;
  return typeof cell === 'object' && cell !== null && 'from' in cell ? <Num of={cell} /> : cell;
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

/** On narrow screens a row is a card. Shows nothing without rows. */
export function Table<Row>({ rows, columns, title, label = title, classOf, children }: TableProps<Row>) {
  if (rows.length === 0) return null;
  const shown = columns.filter((column) => column !== false);
  const table = (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {shown.map(([head]) => (
              <th key={head}>{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n} class={classOf?.(row)}>
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
