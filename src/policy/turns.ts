/**
 * Samples the next turn of a conversation as a continuation of one row of token ids: its prompt is the sampled ids and those of the new messages. Messages
 * rendered again may give another text (white space of a call, removed thoughts) or other tokens of the same text. If the server renders earlier turns as
 * they were sampled, a turn is one request; else it takes three (render, generate, derender), for which vLLM needs --enable-scale-out.
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
type Server = Pick<PolicyServer, 'complete' | 'render' | 'generate' | 'derender' | 'losses'>;

export function createTurns(server: Server) {
  /** False once the server has rendered an earlier turn otherwise than it was sampled. */
  let isFaithful = true;
  /** The number of losses at which the server had no route for rendering. It may have one after the next restart. */
  let rendersNotSince: number | undefined;
  const ends = new Set<number>();

  function seen<Sampled extends GeneratedTurn>(turn: Sampled): Sampled {
    if (turn.finishReason !== 'length') ends.add(turn.tokenIds.at(-1)!);
    return turn;
  }

  const whole = async (asked: Asked, signal?: AbortSignal): Promise<Turn> =>
    seen(parseTurn(await server.complete(completionBody(asked), signal)));

  /** `alone` omits the beginning of an answer. Returns undefined if the server has no route for it. */
  async function render(asked: Asked, signal?: AbortSignal, alone = false): Promise<Rendered | undefined> {
    const body = { ...completionBody(asked), ...(alone && { add_generation_prompt: false }) };
    const rendered = await server.render(body, signal);
    if (rendered === undefined) rendersNotSince = server.losses();
    return rendered === undefined ? undefined : parseRendered(rendered);
  }

  /** Returns the end of the policy's last turn and the ids after it; undefined if they can't be found. */
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
      // A template may render the last turn otherwise than earlier ones, but each turn of the policy has one end.
      const places = placesOf(end, until!);
      if (places.length !== placesOf(end, before!).length + 1) continue;
      const at = placesOf(end, rendered.token_ids)[places.length - 1];
      const added = at === undefined ? [] : rendered.token_ids.slice(at + 1);
      if (added.length > 0 && startsWith(added, until!.slice(places.at(-1)! + 1))) return { end, added };
    }
    return undefined;
  }

  /** Returns undefined if the row can't be continued: the turn then begins a row. */
  async function continued(asked: Asked, before: readonly number[], signal?: AbortSignal): Promise<Turn | undefined> {
    const rendered = await render(asked, signal);
    if (!rendered || startsWith(rendered.token_ids, before)) return undefined;
    const found = await since(asked, rendered, signal);
    if (!found) return undefined;
    // A turn that was cut off has no end yet.
    const promptIds = [...before, ...(ends.has(before.at(-1)!) ? [] : [found.end]), ...found.added];
    const sampled = seen(parseGenerated(await server.generate(generateBody(rendered, promptIds), signal)));
    const message = await server.derender(derenderBody({ asked, promptIds, sampled }), signal);
    isFaithful = false;
    return { ...parseDerendered(message, sampled), promptIds };
  }

  /** Samples the next turn, after the ids `before` if there are any. Throws an OutsideFailure. */
  return async ({ before, ...asked }: Asked, signal?: AbortSignal): Promise<Turn> => {
    if (!before?.length || rendersNotSince === server.losses()) return whole(asked, signal);
    const turn = isFaithful ? await whole(asked, signal) : undefined;
    if (turn && startsWith(turn.promptIds, before)) return turn;
    return (await continued(asked, before, signal)) ?? turn ?? whole(asked, signal);
  };
}

const placesOf = (id: number, ids: readonly number[]): number[] => ids.flatMap((one, n) => (one === id ? [n] : []));

export const startsWith = (ids: readonly number[], beginning: readonly number[]): boolean =>
  ids.length >= beginning.length && beginning.every((id, n) => ids[n] === id);
