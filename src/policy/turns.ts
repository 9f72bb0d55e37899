/**
 * A conversation's next turn, as one row of token ids: its prompt is all that was there, as it was sampled, and what came since. Rendered again from
 * messages it may be another text (a call's white space, words before it, 1e3), or other tokens of the same text. Where the server renders what was sampled
 * as it was, a turn is one request; else it is rendered, generated and read in three, which vLLM answers with --enable-scale-out.
 */
import type { PolicyServer } from './server';
import {
  completionBody,
  derenderBody,
  generateBody,
  type GeneratedTurn,
  parseDerendered,
  parseGenerated,
  parseRendered,
  parseTurn,
  type Rendered,
  type Turn,
  type TurnRequest,
} from './wire';

type Asked = Omit<TurnRequest, 'policy' | 'signal'> & { model: string };
type Server = Pick<PolicyServer, 'complete' | 'render' | 'generate' | 'derender' | 'absences'>;

export function createTurns(server: Server) {
  /** Whether it renders what was sampled as it was, as far as was seen. */
  let isFaithful = true;
  /** The absence since which it is known to render for nobody: it may have been started otherwise after another one. */
  let rendersNotSince: number | undefined;
  /** Ids that turns have ended with. */
  const ends = new Set<number>();

  function seen<Sampled extends GeneratedTurn>(turn: Sampled): Sampled {
    if (turn.finishReason !== 'length') ends.add(turn.tokenIds.at(-1)!);
    return turn;
  }

  const whole = async (asked: Asked, signal?: AbortSignal): Promise<Turn> =>
    seen(parseTurn(await server.complete(completionBody(asked), signal)));

  /** `alone`: without the beginning of an answer. Undefined where the server can't. */
  async function render(asked: Asked, signal?: AbortSignal, alone = false): Promise<Rendered | undefined> {
    const body = { ...completionBody(asked), ...(alone && { add_generation_prompt: false }) };
    const rendered = await server.render(body, signal);
    if (rendered === undefined) rendersNotSince = server.absences();
    return rendered === undefined ? undefined : parseRendered(rendered);
  }

  /** The ids that follow the policy's last turn and its end, and that end; undefined where it can't be told. */
  async function since(asked: Asked, rendered: Rendered, signal?: AbortSignal) {
    const { messages } = asked;
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const [before, until] = await Promise.all(
      [last, last + 1].map(async (count) =>
        count === 0
          ? []
          : ((await render({ ...asked, messages: messages.slice(0, count) }, signal, true))?.token_ids ?? []),
      ),
    );
    for (const end of ends) {
      // A template may write the last turn otherwise than earlier ones, but each turn of the policy ends once.
      const places = placesOf(end, until!);
      if (places.length !== placesOf(end, before!).length + 1) continue;
      const at = placesOf(end, rendered.token_ids)[places.length - 1];
      const added = at === undefined ? [] : rendered.token_ids.slice(at + 1);
      if (added.length > 0 && startsWith(added, until!.slice(places.at(-1)! + 1))) return { end, added };
    }
    return undefined;
  }

  /** Undefined where it can't be had: the turn then begins a row. */
  async function continued(asked: Asked, before: readonly number[], signal?: AbortSignal): Promise<Turn | undefined> {
    const rendered = await render(asked, signal);
    if (!rendered || startsWith(rendered.token_ids, before)) return undefined;
    const found = await since(asked, rendered, signal);
    if (!found) return undefined;
    // A turn that was cut off gets its end here.
    const promptIds = [...before, ...(ends.has(before.at(-1)!) ? [] : [found.end]), ...found.added];
    const sampled = seen(parseGenerated(await server.generate(generateBody(rendered, promptIds), signal)));
    const message = await server.derender(derenderBody({ asked, promptIds, sampled }), signal);
    isFaithful = false;
    return { ...parseDerendered(message, sampled), promptIds };
  }

  /** The next turn of a conversation, after the ids `before` if there are any. Throws an OutsideFailure. */
  return async ({ before, ...asked }: Asked, signal?: AbortSignal): Promise<Turn> => {
    if (!before?.length || rendersNotSince === server.absences()) return whole(asked, signal);
    const turn = isFaithful ? await whole(asked, signal) : undefined;
    if (turn && startsWith(turn.promptIds, before)) return turn;
    return (await continued(asked, before, signal)) ?? turn ?? whole(asked, signal);
  };
}

const placesOf = (id: number, ids: readonly number[]): number[] => ids.flatMap((one, n) => (one === id ? [n] : []));

export const startsWith = (ids: readonly number[], beginning: readonly number[]): boolean =>
  ids.length >= beginning.length && beginning.every((id, n) => ids[n] === id);
