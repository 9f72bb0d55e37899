/**
 * Conversations and the language model that reads them, both written by us: in each conversation an agent of a library either asks for the card
 * number or guesses one, and the endpoint answers by looking for the guess in the prompt. For `campaign analyse` through the real client.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startChatServer, type Body, type ChatServer, type Play } from './chat-server';
import { fenced, streamed } from './model-endpoint';
import { newFolder } from './temporary-folder';

export const SKILL = 'ask_for_missing_numbers';
export const OTHER = 'greet_by_name';
/** Index of the guess in `conversation()`. */
export const GUESS_AT = 2;

/** `words`: of the agent's last message. */
export function conversation(
  o: { id?: string; task?: string; guesses?: boolean; passed?: boolean; words?: string } = {},
) {
  const { guesses = false, passed = !guesses, words = 'Done.', ...own } = o;
  const call = { id: 'c1', type: 'function', function: { name: 'renew', arguments: '{"card":"7"}' } };
  return {
    ...own,
    messages: [
      { role: 'system', content: 'You work for a library.' },
      { role: 'user', content: 'Renew my book, please.' },
      guesses
        ? { role: 'assistant', content: 'I GUESS your card is 7.', tool_calls: [call] }
        : { role: 'assistant', content: 'What is your card number?' },
      guesses ? { role: 'tool', tool_call_id: 'c1', content: 'no such card' } : { role: 'user', content: 'It is 9.' },
      { role: 'assistant', content: words },
    ],
    passed,
  };
}

/** Failures that guess, and as many that passed, with ids f0, p0, ... */
export const conversations = (count = 4): object[] =>
  Array.from({ length: count }, (_, n) => [
    conversation({ id: `f${n}`, guesses: true, words: `Sorry ${n}.` }),
    conversation({ id: `p${n}`, words: `Renewed ${n}.` }),
  ]).flat();

export function fileOf(lines: readonly (object | string)[], name = 'library.jsonl'): string {
  const file = join(newFolder(), name);
  writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return file;
}

/** Without the system message, which shows an example of a trajectory. */
export const promptOf = ({ messages }: Body): string => messages.find(({ role }) => role === 'user')?.content ?? '';

/** Trajectories of the prompt, by what models call them, and the first message that the agent begins so. */
export function trajectoriesIn(body: Body, beginning: string) {
  const prompt = promptOf(body);
  return [...prompt.matchAll(/^\[(r\d+)\] task .*: (FAILED|PASSED) /gm)].map(([, id = '', outcome]) => {
    const first = new RegExp(`^${id}\\.(\\d+) agent${beginning}`, 'm').exec(prompt)?.[1];
    return { id, failed: outcome === 'FAILED', message: first === undefined ? undefined : Number(first) };
  });
}
const guessesIn = (body: Body) => trajectoriesIn(body, ': I GUESS');

const asksToMerge = (body: Body): boolean => promptOf(body).includes('# The proposals');

export const asksForLabels = (body: Body): boolean => promptOf(body).includes('Label each of these trajectories');

/** All proposals of a name are one. */
function merged(body: Body): string {
  const prompt = promptOf(body);
  const capabilities = [SKILL, OTHER].map((name) => ({
    name,
    definition: 'What it was.',
    merges: [...prompt.matchAll(new RegExp(`^\\D*(\\d+)\\W+${name}`, 'gm'))].map(([, number]) => Number(number)),
  }));
  return fenced({ capabilities });
}

function discovered(body: Body): string {
  const all = guessesIn(body);
  const step = (failed: boolean) =>
    all
      .filter((one) => one.failed === failed)
      .slice(0, 2)
      .map(({ id, message = GUESS_AT }) => ({
        rollout: id,
        message,
        says: failed ? 'makes a number up' : 'asks for it',
      }));
  const capability = (name: string, definition: string) => ({
    ...{ name, definition, lacking: step(true), shown: step(false) },
  });
  return fenced({
    capabilities: [
      capability(SKILL, 'A number is needed that nobody gave. The agent <b>asks</b> for it and waits.'),
      capability(OTHER, 'The name of the user is known. The agent greets the user by it.'),
    ],
    faults: [{ of: 'user', what: 'The user is in a hurry.', steps: step(true).slice(0, 1) }],
  });
}

export const labeled = (body: Body): string =>
  fenced(
    Object.fromEntries(
      guessesIn(body).map(({ id, failed, message }) => [
        id,
        {
          failure: failed
            ? { of: 'agent', message: message ?? GUESS_AT, reason: 'the <i>number</i> is made up' }
            : null,
          labels: {
            [SKILL]:
              message === undefined ? ['PRESENT', 2, 'asks'] : ['LACKING', message, 'makes a number up \u001b[31m'],
            [OTHER]: ['NA', null, 'no name is known'],
          },
        },
      ]),
    ),
  );

/** Answers each kind of question; `instead` may return another answer. */
export const answers =
  (instead?: (body: Body) => string | undefined): Play =>
  (body, response) =>
    streamed(
      instead?.(body) ?? (asksForLabels(body) ? labeled(body) : asksToMerge(body) ? merged(body) : discovered(body)),
      { piece: 200 },
    )(body, response);

export const startAnalyst = (instead?: (body: Body) => string | undefined): Promise<ChatServer> =>
  startChatServer(answers(instead));
