/** One rollout with all its data: the conversation, its outcome and the reasons, and the labels of passes. */
import { canonical } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import type { Rollout } from '../domain/rollout';
import { messageRoles } from '../report/format';
import { quotedMessage } from '../report/build/quotes';
import { turnSeed } from '../rollout/play';
import { plainText } from '../domain/plain-text';
import { wrap } from '../terminal';
import { argumentsOf, callText, jsonText, type Message } from '../domain/messages';
import type { ComparedAction, ShownRollout } from './api';
import { type IndexedRollout, listed, type RolloutIndex, toolsOf } from './rollouts';

/** Characters shown of one message, so that pages stay responsive; the page states how much is missing. */
const LONGEST = 1_000_000;
const OTHERS = 50;

export async function shownRollout(
  index: RolloutIndex,
  store: ArtifactStore,
  one: IndexedRollout,
): Promise<ShownRollout> {
  const rollout = await index.read(one);
  const { messages = [], reference } = rollout.status === 'scored' ? rollout : {};
  const begins = index.beginningOf(one.id);
  const others = index
    .all()
    .filter(({ task, id, isRepeated }) => task === one.task && id !== one.id && !isRepeated)
    .sort((a, b) => Number(b.batch === one.batch) - Number(a.batch === one.batch))
    .slice(0, OTHERS)
    .map(({ id, batch, attempt, outcome }) => ({ id, name: `${batch.title}, attempt ${attempt}: ${outcome}` }));
  const lacking = index.lackingOf(one.id);
  const votes = ({ name, lacking: count, passes }: (typeof lacking)[number]) =>
    `lacks ${name}, ${count} of ${passes} passes`;
  return {
    ...listed(one),
    facts: [
      ...factsOf(rollout),
      ...(reference?.tell.length ? [['required facts', reference.tell.join('; ')] as const] : []),
      ...(lacking.length > 0 ? [['analysis', lacking.map(votes).join('; ')] as const] : []),
      ['id', one.id],
      ['batch', `${one.batch.title} (${one.batch.ref.sha256})`],
      ...(await madeOf(store, one.batch)),
      ['seed of the first answer', String(turnSeed({ key: one.id, turn: 0 }))],
    ],
    messages: messages.map((message, n) => quotedMessage(message, n, LONGEST)),
    tools: await toolsOf(store, one.batch),
    ...(reference && { reference: compareActions(reference.actions, messages) }),
    cited: [
      ...(begins
        ? [{ message: begins.message, says: `the failure begins here (${begins.of}): ${begins.reason}` }]
        : []),
      ...lacking.flatMap((of) =>
        of.message === undefined ? [] : [{ message: of.message, says: `${votes(of)}: ${of.says}` }],
      ),
      ...index.citedIn(one.id),
    ],
    others,
  };
}

type Action = Parameters<typeof callText>[0];

/** Pairs each reference action with a call of the same name, with the same arguments first. The other calls come last. */
export function compareActions(expected: readonly Action[], messages: readonly Message[]): ComparedAction[] {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []));
  const take = (isPair: (call: Action) => boolean): Action | undefined => {
    const at = calls.findIndex(isPair);
    return at < 0 ? undefined : calls.splice(at, 1)[0];
  };
  const exact = expected.map((action) => take((call) => sameCall(call, action)));
  const compared = expected.map((action, n): ComparedAction => {
    const made = exact[n] ?? take(({ name }) => name === action.name);
    const state = exact[n] ? 'made' : made ? 'wrong arguments' : 'missing';
    return { state, expected: callText(action), ...(made && { made: callText(made) }) };
  });
  return [...compared, ...calls.map((call) => ({ state: 'extra' as const, made: callText(call) }))];
}

const sameCall = (one: Action, other: Action): boolean =>
  one.name === other.name && sortedArguments(one) === sortedArguments(other);

const sortedArguments = (action: Action): string => {
  const text = argumentsOf(action);
  return canonical(jsonText.safeParse(text).data ?? text);
};

type Facts = ShownRollout['facts'];

function factsOf(rollout: Rollout): Facts {
  if (rollout.status === 'broken') return [[rollout.error.type, rollout.error.message]];
  const { reward, breakdown, stopReason, steps, seconds, usage, branch, routed } = rollout;
  const text = (value: object): string =>
    Object.entries(value)
      .map(([name, number]) => `${name} ${Number(Number(number).toFixed(4))}`)
      .join(', ');
  const facts: [string, string | undefined][] = [
    ['reward', String(reward)],
    ['of which', text(breakdown)],
    ['ended by', stopReason],
    ['answers', String(steps)],
    ['tokens', `${usage.promptTokens} read, ${usage.completionTokens} sampled`],
    ['seconds', seconds.toFixed(1)],
    ['branch', branch],
    ['routed to', routed && [routed.chosen, text(routed.probabilities)].filter(Boolean).join(': ')],
  ];
  return facts.flatMap(([name, value]) => (value ? [[name, value] as const] : []));
}

/** The policy whose rollouts a batch holds: a hash that `campaign show` takes. */
async function madeOf(store: ArtifactStore, { inputs }: IndexedRollout['batch']): Promise<Facts> {
  const kinds: Record<string, string> = { train: 'adapter', merge: 'adapter', fitRouter: 'router' };
  const made = inputs.map(async (ref): Promise<Facts> => {
    const { producer } = await store.provenance(ref).catch(() => ({ producer: '' }));
    return kinds[producer] ? [[kinds[producer], ref.sha256]] : [];
  });
  return (await Promise.all(made)).flat();
}

/** As `campaign show` prints it. */
export function shownText({ task, attempt, outcome, ...shown }: ShownRollout, columns = 60): string {
  const { facts, messages, cited, reference = [] } = shown;
  const lines = (text: string, indent = '') =>
    plainText(text)
      .split('\n')
      .flatMap((line) => wrap(line, columns - indent.length, { cutsWords: true }))
      .map((line) => indent + line);
  return [
    ...lines(`${task}, attempt ${attempt}: ${outcome}`),
    ...facts.flatMap(([name, value]) => lines(`${name}: ${value}`)),
    ...reference.flatMap(({ state, expected, made }) =>
      expected === undefined
        ? []
        : lines(`reference action ${expected}: ${state}${state === 'wrong arguments' ? `, ${made}` : ''}`),
    ),
    ...messages.flatMap(({ message, role, text, missing }) => [
      '',
      `${message} ${messageRoles[role]}`,
      ...lines(missing ? `${text}\n(${missing} characters more)` : text, '  '),
      ...cited.flatMap((one) => (one.message === message ? lines(`<- ${one.says}`) : [])),
    ]),
  ].join('\n');
}
