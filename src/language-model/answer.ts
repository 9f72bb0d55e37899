/**
 * An answer that can be used: what can't be is sent back with what is wrong with it. Invariant: nobody fills in what a model left out or
 * guesses what it meant; it mends its answer, or there is none.
 */
import { OutsideFailure } from '../domain/failures';
import { CHARACTERS_A_TOKEN, tokensOf } from '../domain/endpoints';
import { openPrompts, type Prompts } from './prompts';
import type { Asking, ChatMessage, LanguageModel, ModelReply } from './types';

/** What can be made of a reply; or what is wrong with it, in words for the model. */
export type Read<T> = { value: T } | { defects: string[] };

export async function answerOf<T>(o: {
  model: LanguageModel;
  messages: readonly ChatMessage[];
  seed: number;
  read: (text: string) => Read<T> | Promise<Read<T>>;
  /** How often at most it is asked to mend its answer. */
  repairs: number;
  asking: Asking;
  /** Of the user, where there are some: `repair` is asked by. */
  prompts?: Prompts;
}): Promise<T> {
  const { model, seed, read, repairs, asking, prompts = openPrompts() } = o;
  let messages = [...o.messages];
  for (let repair = 0; ; repair++) {
    const reply = await model.ask({ messages, seed }, asking);
    const unusable = defectOf(reply);
    const result = unusable === undefined ? await read(reply.text) : { defects: [unusable] };
    if ('value' in result) return result.value;
    const defects = result.defects.map((defect) => `- ${defect}`).join('\n');
    if (repair === repairs) throw invalid({ step: asking.step, repairs, defects });
    const told = prompts.render('repair', { defects });
    messages = fitting({ question: o.messages, before: messages, said: saidIn(reply), told, room: model.promptTokens });
  }
}

/** Of one that was cut off no more is quoted: most of it is what should not have been written. */
const QUOTED_OF_CUT_OFF = 4000;
/** Of an answer, whatever else is in the request. */
const LEAST_QUOTED = 1000;
const MARK_CHARACTERS = 60;

function saidIn({ text, finish }: ModelReply): string {
  // Endpoints refuse a message without words.
  if (text.trim() === '') return '(nothing)';
  return finish === 'length' ? beginning(text, QUOTED_OF_CUT_OFF) : text;
}

/** All that was said; or else, where a request can't hold that, the question and the last answer, or as much of it as there is room for. */
function fitting(o: {
  question: readonly ChatMessage[];
  before: readonly ChatMessage[];
  said: string;
  told: readonly ChatMessage[];
  room: number | undefined;
}): ChatMessage[] {
  const { question, before, said, told, room = Infinity } = o;
  const after = (messages: readonly ChatMessage[], content: string): ChatMessage[] => [
    ...messages,
    { role: 'assistant', content },
    ...told,
  ];
  const fits = [after(before, said), after(question, said)].find((all) => tokensOf(charactersOf(all)) <= room);
  if (fits) return fits;
  const left = room * CHARACTERS_A_TOKEN - charactersOf(after(question, '')) - MARK_CHARACTERS;
  return after(question, beginning(said, Math.max(LEAST_QUOTED, left)));
}

const charactersOf = (messages: readonly ChatMessage[]): number =>
  messages.reduce((sum, { content }) => sum + content.length, 0);

function beginning(text: string, characters: number): string {
  if (text.length <= characters) return text;
  // Not half a character.
  const kept = text.slice(0, characters).replace(/[\ud800-\udbff]$/, '');
  return `${kept}\n\n[cut here: ${text.length - kept.length} more characters]`;
}

/** What makes a reply unusable whatever was asked. */
function defectOf({ text, finish }: ModelReply): string | undefined {
  if (finish === 'length')
    return 'it was cut off because it is too long; give a shorter one: leave out what was not asked for, and reason less before it';
  if (finish === 'content_filter')
    return 'it was withheld, as a refusal or by a content filter; give the answer that was asked for in other words, and nothing beside it';
  return text.trim() === '' ? 'it is empty; write the answer itself, in the form that was asked for' : undefined;
}

function invalid({ step, repairs, defects }: { step: string; repairs: number; defects: string }): OutsideFailure {
  const shown = defects.length > 2000 ? `${defects.slice(0, 2000)} ...` : defects;
  const asked = repairs === 1 ? 'one repair' : `${repairs} repairs`;
  const fix = 'raise repairs or maxTokens, or take a stronger model';
  return new OutsideFailure('AnswerInvalid', `${step}: no answer that can be used, after ${asked}; ${fix}:\n${shown}`);
}
