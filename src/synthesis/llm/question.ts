/**
 * Builds the requests to the model. Equal inputs give equal bytes, and all capabilities of a target and all rounds of one share a prefix. Samples are cut
 * to fit the context; the description of the target does not depend on the order of rollouts.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Candidate, Lacking } from '../../domain/capability';
import { badInput } from '../../domain/failures';
import { getOrMake } from '../../domain/maps';
import { plainLine } from '../../domain/plain-text';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { compact, shortIds, cut } from '../../domain/transcript';
import { renderPrompt } from '../../llm/answer';
import type { ChatMessage } from '../../llm/model';
import type { ReviseInput, WriteInput } from '../synthesizer';
import { adviceText, attemptsText, foundText } from './feedback';
import { ownCode, type Target } from './read-module';
import type { EnvironmentDescription } from '../../domain/environment';
import { type Answer, answersIn, jsonOf } from '../../sandbox/conversation';

/** The project's own, seen from src/ and from dist/: modules that pass the self-test. */
const EXAMPLES = resolve(__dirname, '..', '..', '..', 'prompts', 'examples');
const EXAMPLE_NAMES = ['board', 'pages'];

/** The most is shown that fits: samples of each tool and their characters, failures, successes, messages of users. */
const SIZES = [
  { most: 3, chars: 1_500, failures: 5, successes: 2, users: 24 },
  { most: 3, chars: 700, failures: 4, successes: 2, users: 12 },
  { most: 2, chars: 400, failures: 3, successes: 1, users: 8 },
  { most: 1, chars: 300, failures: 1, successes: 1, users: 4 },
];
/** As rough as tokenizers differ: code and JSON have fewer characters to a token than prose. */
const CHARS_PER_TOKEN = 3.5;

export interface Room {
  contextTokens: number;
  maxTokens: number;
}

interface Asked {
  shown: readonly ScoredRollout[];
  room: Room;
  more: readonly ChatMessage[];
}

export const examplesText = (): string =>
  EXAMPLE_NAMES.map((name) => readFileSync(join(EXAMPLES, `${name}.js`), 'utf8').replace('// prettier-ignore\n', ''))
    .map((text) => `\`\`\`javascript\n${text.trim()}\n\`\`\``)
    .join('\n\n');

/** Returns the messages that ask for a module, and the data to check its answer. `shown`: the rollouts that may be shown (showable()). */
export function questionOf(
  { candidate, others, description, forbidden }: Pick<WriteInput, 'candidate' | 'others' | 'description' | 'forbidden'>,
  { shown, room, more }: Asked,
): { messages: ChatMessage[]; target: Target } {
  const samples = samplesOf(shown);
  const tried = SIZES.map((size) => {
    const observations = samplesText(samples, size) || '(none was called)';
    const evidence = evidenceText({ candidate, rollouts: shown, ...size });
    const users = usersText(shown, { most: size.users });
    const messages = renderPrompt('environment', {
      examples: examplesText(),
      policy: policyText(description),
      tools: toolsText(description),
      steps: String(description.maxSteps),
      observations,
      users,
      lacking: lackingText([candidate, ...others]),
      capability: candidate.name,
      definition: plainLine(candidate.definition) || '(none was given)',
      evidence,
    });
    const texts = description.tools.length === 0 ? renderPrompt('environment-texts', {}) : [];
    return {
      messages: [...joined([...messages, ...texts]), ...more],
      target: { description, samples, forbidden, shown: `${observations}\n${evidence}\n${users}` },
    };
  });
  const fitting = tried.find(({ messages }) => tokensOf(messages) + room.maxTokens <= room.contextTokens);
  if (fitting) return fitting;
  const needed = tokensOf(tried.at(-1)?.messages ?? []) + room.maxTokens;
  throw badInput(
    `synthesizer.contextTokens is ${room.contextTokens}, of which maxTokens are ${room.maxTokens}; the shortest prompt needs about ` +
      `${needed} in all; set contextTokens to that or more (and take a model that has them), or lower maxTokens`,
  );
}

/** Joins consecutive messages of one role: some endpoints require alternating roles. */
const joined = (messages: readonly ChatMessage[]): ChatMessage[] =>
  messages.reduce<ChatMessage[]>((all, message) => {
    const last = all.at(-1);
    if (last?.role !== message.role) return [...all, message];
    return [...all.slice(0, -1), { ...last, content: `${last.content}\n\n${message.content}` }];
  }, []);

const lackingText = (lacking: readonly Lacking[]): string =>
  [...lacking]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, definition }) => `- ${name}: ${plainLine(definition) || '(no definition was given)'}`)
    .join('\n');

const tokensOf = (messages: readonly ChatMessage[]): number =>
  Math.ceil(messages.reduce((sum, { content }) => sum + content.length, 0) / CHARS_PER_TOKEN);

/** Returns the previous module as the model's own earlier answer, with the findings on it. */
export const revisionOf = ({ round, previous }: Pick<ReviseInput, 'round' | 'previous'>): ChatMessage[] => [
  { role: 'assistant', content: `\`\`\`javascript\n${ownCode(previous.source)}\n\`\`\`` },
  ...renderPrompt('environment-revision', {
    round: String(round),
    found: [foundText(previous), ...(previous.attempts ? [attemptsText(previous.attempts)] : [])].join('\n\n'),
    advice: adviceText(previous),
  }),
];

/** `rollouts`: those that may be shown, in the order of tasks. */
function evidenceText(o: {
  candidate: Candidate;
  rollouts: readonly ScoredRollout[];
  failures: number;
  successes: number;
}): string {
  const { candidate, rollouts } = o;
  const cited = candidate.citations ?? [];
  const named = new Set([...cited.map(({ rollout }) => rollout), ...candidate.examples]);
  const known = rollouts.filter(({ key }) => named.has(key));
  const place = ({ key }: ScoredRollout): number => [...named].indexOf(key);
  const from = known.length > 0 ? known.sort((a, b) => place(a) - place(b)) : rollouts;
  const chosen = [
    ...from.filter((rollout) => !isSuccess(rollout)).slice(0, o.failures),
    ...from.filter(isSuccess).slice(0, o.successes),
  ];
  if (chosen.length === 0) return '(no attempt may be shown)';
  const ids = shortIds(chosen);
  const steps = cited.flatMap(({ rollout, message, says, verbatim }) =>
    ids.has(rollout) ? [`- ${ids.get(rollout)}.${message}: ${plainLine(verbatim ?? says)}`] : [],
  );
  return [
    ...(known.length > 0 ? [] : ['(none was named for this capability; these are any attempts at the target)', '']),
    ...(steps.length > 0 ? ['What was noticed in them:', ...steps, ''] : []),
    compact({ rollouts: chosen, ids }),
  ].join('\n');
}

/** Sample answers of each tool of the agent; the first ones are of different kinds where possible. */
const MOST_SAMPLES = 3;
const GIVEN_CHARS = 200;
const USER_CHARS = 300;

function samplesOf(rollouts: readonly ScoredRollout[]): Answer[] {
  const all = new Map<string, Map<string, Answer>>();
  for (const sample of rollouts.flatMap(({ messages }) => answersIn(messages))) {
    const known = getOrMake(all, sample.tool, () => new Map<string, Answer>());
    getOrMake(known, sample.content, () => sample);
  }
  return [...all.keys()].sort().flatMap((tool) => varied([...(all.get(tool)?.values() ?? [])]));
}

/** One of each kind in turn: JSON, an error, other text. */
function varied(samples: readonly Answer[]): Answer[] {
  const kindOf = ({ content }: Answer): string =>
    jsonOf(content) ? 'json' : /^\W*error/i.test(content) ? 'error' : 'text';
  const kinds = ['json', 'text', 'error'].map((kind) => samples.filter((sample) => kindOf(sample) === kind));
  const turns = Array.from({ length: MOST_SAMPLES }, (_, n) => kinds.flatMap((kind) => kind[n] ?? [])).flat();
  return turns.slice(0, MOST_SAMPLES);
}

const policyText = ({ policy }: EnvironmentDescription): string => policy.trim() || '(none is written down)';

const toolsText = ({ tools }: EnvironmentDescription): string =>
  tools.map((tool) => JSON.stringify(tool)).join('\n') || '(the target has no tools)';

function samplesText(samples: readonly Answer[], { most, chars }: { most: number; chars: number }): string {
  const tools = [...new Set(samples.map(({ tool }) => tool))];
  const shown = tools.flatMap((tool) => samples.filter((sample) => sample.tool === tool).slice(0, most));
  return shown
    .map(
      ({ tool, given, content }) =>
        `${plainLine(tool)}(${cut(given, GIVEN_CHARS)})\n=> ${cut(content, chars) || '(empty)'}`,
    )
    .join('\n\n');
}

/** Users' first messages and later ones: `most` of each, from all over the rollouts. */
function usersText(rollouts: readonly ScoredRollout[], { most }: { most: number }): string {
  const said = rollouts.map(({ messages }) =>
    messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])),
  );
  const first = said.flatMap(([message]) => message ?? []);
  const later = said.flatMap(([, ...messages]) => messages);
  const listed = (title: string, messages: readonly string[]): string[] => [
    title,
    ...messages.map((message) => `- ${cut(message, USER_CHARS)}`),
  ];
  const spread = (messages: readonly string[]): string[] => {
    const distinct = [...new Set(messages)];
    return distinct.filter((_, n) => n % Math.max(1, Math.floor(distinct.length / most)) === 0).slice(0, most);
  };
  return [...listed('First:', spread(first)), ...listed('Later:', spread(later))].join('\n');
}
