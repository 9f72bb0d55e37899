/** The blocks of a view. Texts are text: nothing here is parsed as markup. */
import { createContext, Fragment } from 'preact';
import { useContext, useState } from 'preact/hooks';
import {
  type Block,
  type Blocks as Data,
  type Line,
  type Page,
  type Piece,
  piecesOf,
  type Quote,
} from '../../src/report/blocks';
import type { Figure } from '../../src/domain/artifacts';
import {
  beginningOf,
  messageRoles,
  shortId,
  shortPercent,
  shortSha,
  spreadText,
  TEST,
  testText,
  valueText,
  wholeNumber,
} from '../../src/report/format';
import { Plot } from './plots';
import { Table } from './table';
import { parsed, Text } from './text';

export const PageContext = createContext<Page & { tell?: (text: string) => void }>({ title: '', views: [] });

export const Blocks = ({ blocks }: { blocks: Data }) => (
  // What somebody has written into one decision is not another's.
  <>{blocks.map((block, n) => block && <Shown key={block.kind === 'decision' ? block.of : n} block={block} />)}</>
);

function Shown({ block }: { block: Block }) {
  switch (block.kind) {
    case 'heading':
      return block.level === 2 ? <h2 id={block.id}>{block.text}</h2> : <h3 id={block.id}>{block.text}</h3>;
    case 'paragraph':
      return (
        <p class={block.tone}>
          <Pieces line={block.text} />
        </p>
      );
    case 'list':
      return (
        <ul class={block.tone}>
          {block.items.map((item, n) => (
            <li key={n}>
              <Pieces line={item} />
            </li>
          ))}
        </ul>
      );
    case 'facts':
      return (
        <dl class="facts">
          {block.facts.map(({ name, value, note }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Pieces line={value} />
                {note !== undefined && (
                  <span class="quiet">
                    <Pieces line={note} />
                  </span>
                )}
              </dd>
            </div>
          ))}
        </dl>
      );
    case 'table':
      return <Table table={block} />;
    case 'quote':
      return <Messages {...block} />;
    case 'source':
      return (
        <pre class="source" tabIndex={0}>
          {block.text}
        </pre>
      );
    case 'plot':
      return (
        <figure>
          <Plot plot={block.plot} />
          <figcaption class="quiet">
            <Pieces line={block.caption} />
          </figcaption>
        </figure>
      );
    case 'decision':
      return <Decision {...block} />;
    case 'fold':
      return block.blocks.length === 0 ? (
        <div class="fold" id={block.id}>
          <Pieces line={block.summary} />
        </div>
      ) : (
        <details class="fold" id={block.id} open={block.open}>
          <summary>
            <Pieces line={block.summary} />
          </summary>
          <div>
            <Blocks blocks={block.blocks} />
          </div>
        </details>
      );
  }
}

/** Messages of a conversation, as they were said. `says`: of the one with a number, beside it. */
export const Messages = ({ messages, cited, says }: Omit<Quote, 'kind'> & { says?: (message: number) => string[] }) => (
  <ol class="messages">
    {messages.map(({ message, role, text, missing: cut }) => (
      <li key={message} class={`${role}${message === cited ? ' cited' : ''}`}>
        <span class="quiet">
          {message} {messageRoles[role]}
        </span>
        <div class="said">
          <Long text={text} missing={cut} />
          {says?.(message).map((one) => (
            <p key={one} class="note">
              {one}
            </p>
          ))}
        </div>
      </li>
    ))}
  </ol>
);

export const Pieces = ({ line, folds = false }: { line: Line; folds?: boolean }) => (
  <>
    {piecesOf(line).map((piece, n) => (
      <Fragment key={n}>
        {n > 0 && ' '}
        <One piece={piece} folds={folds} />
      </Fragment>
    ))}
  </>
);

function One({ piece, folds }: { piece: Piece; folds: boolean }) {
  if (piece === '\n') return <br />;
  if (typeof piece === 'string') return folds ? <Long text={piece} /> : <Text text={piece} />;
  if ('tone' in piece) return <span class={piece.tone}>{piece.text}</span>;
  if ('code' in piece) return <code>{piece.code}</code>;
  if ('rollout' in piece) return <Rollout {...piece} />;
  if ('link' in piece)
    return (
      <a href={/^https?:/.test(piece.to) ? piece.to : `#${piece.to}`} rel="noreferrer">
        <Text text={piece.link} />
      </a>
    );
  if ('id' in piece) return <Measured figure={piece} />;
  if ('value' in piece)
    return (
      <>
        <b>{valueText(piece)}</b> <span class="quiet">{spreadText(piece)}</span>
      </>
    );
  return <Lineage of={piece.lineage} />;
}

function Rollout({ rollout: id, message }: Extract<Piece, { rollout: string }>) {
  const { served } = useContext(PageContext);
  const at = message === undefined ? '' : `?message=${message}`;
  const name = <Text text={shortId(id)} />;
  return served ? <a href={`#conversation/${id}${at}`}>{name}</a> : <code title={id}>{name}</code>;
}

/** What waits is decided here as by `campaign approve` and `campaign reject`. */
function Decision({ of, names }: Omit<Extract<Block, { kind: 'decision' }>, 'kind'>) {
  const { tell = () => undefined } = useContext(PageContext);
  const [reason, setReason] = useState('');
  const decide = async (verb: 'approve' | 'reject') => {
    tell('…');
    const body = JSON.stringify({ verb, what: names, of: [of], ...(verb === 'reject' && { reason }) });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch('api/approvals', { method: 'POST', headers, body }).catch(() => undefined);
    if (!answer) return tell('campaign view does not answer');
    tell(answer.ok ? parsed<{ decided: string[] }>(await answer.text()).decided.join(' ') : await answer.text());
  };
  return (
    <div class="decision">
      <button type="button" onClick={() => decide('approve')}>
        Approve {names.join(', ')}
      </button>
      <input
        aria-label="Why it is rejected"
        placeholder="Why it is rejected"
        value={reason}
        onInput={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <button type="button" disabled={reason.trim() === ''} onClick={() => decide('reject')}>
        Reject
      </button>
    </div>
  );
}

/** From a figure's id or an artifact's sha256 to its rollouts: a page that is served has them. */
function Behind({ start }: { start: string }) {
  const { campaign, served } = useContext(PageContext);
  if (campaign === undefined) return null;
  if (!served) return <code>{`campaign lineage ${start} --campaign ${campaign}`}</code>;
  return <a href={`#conversations?figure=${encodeURIComponent(start)}`}>the conversations behind {shortId(start)}</a>;
}

/** What a sentence rests on: folded, since few ask. */
function Lineage({ of }: { of: Extract<Piece, { lineage: unknown }>['lineage'] }) {
  const { campaign } = useContext(PageContext);
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

/** It opens to its interval, its artifacts and its lineage command. */
function Measured({ figure }: { figure: Figure }) {
  const { id, n, unit, interval, test, from } = figure;
  // Of a count, n is the count again.
  const counts = unit === 'count' || unit === 'tokens';
  return (
    <details class="figure">
      <summary>
        <b>{valueText(figure)}</b>
        <span class="quiet">
          {[spreadText(figure), counts ? '' : `n ${wholeNumber(n)}`].filter(Boolean).join(' · ')}
        </span>
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

/** Characters that are shown at once. */
const SHORT = 300;

/** `missing` characters are not in the report. */
function Long({ text, missing = 0 }: { text: string; missing?: number | undefined }) {
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
