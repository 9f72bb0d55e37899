/** One rollout with all that is known of it: its conversation, what it came to and why, and what passes said of it. */
import type { ArtifactStore } from '../store/store';
import type { Rollout } from '../domain/rollout';
import { messageRoles } from '../report/format';
import { quotedMessage } from '../report/build/quotes';
import { turnSeed } from '../rollout/batch';
import { plainText } from '../domain/plain-text';
import { wrap } from '../terminal';
import type { ShownRollout } from './api';
import { type IndexedRollout, listed, type RolloutIndex } from './rollouts';

/** Characters of one message: a page stays fluent, and says what is missing. */
const LONGEST = 1_000_000;
const OTHERS = 50;

export async function shownRollout(
  index: RolloutIndex,
  store: ArtifactStore,
  one: IndexedRollout,
): Promise<ShownRollout> {
  const rollout = await index.read(one);
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
      ...(lacking.length > 0 ? [{ name: 'analysis', value: lacking.map(votes).join('; ') }] : []),
    ],
    madeFrom: [
      { name: 'id', value: one.id },
      { name: 'batch', value: `${one.batch.title} (${one.batch.ref.sha256})` },
      ...(await madeOf(store, one.batch)),
      { name: 'seed of the first answer', value: String(turnSeed({ key: one.id, turn: 0 })) },
    ],
    messages:
      rollout.status === 'scored' ? rollout.messages.map((message, n) => quotedMessage(message, n, LONGEST)) : [],
    cited: [
      ...(begins
        ? [{ message: begins.message, says: `the failure begins here (${begins.of}): ${begins.reason}` }]
        : []),
      ...lacking.flatMap((of) =>
        of.message === undefined ? [] : [{ message: of.message, says: `${votes(of)}: ${of.reason}` }],
      ),
      ...index.citedIn(one.id),
    ],
    others,
  };
}

type Facts = ShownRollout['facts'];

function factsOf(rollout: Rollout): Facts {
  if (rollout.status === 'broken') return [{ name: rollout.error.type, value: rollout.error.message }];
  const { reward, breakdown, stopReason, steps, seconds, usage, branch, routed, reference } = rollout;
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
    ['right actions', reference && reference.actions.map(({ name }) => name).join(', ')],
  ];
  return facts.flatMap(([name, value]) => (value ? [{ name, value }] : []));
}

/** Whose rollouts a batch holds, by what it was made from. */
async function madeOf(store: ArtifactStore, { inputs }: IndexedRollout['batch']): Promise<Facts> {
  const made = await Promise.all(
    inputs.map(async (ref) => {
      const { producer } = await store.provenance(ref).catch(() => ({ producer: '' }));
      return producer === 'train' || producer === 'merge' || producer === 'fitRouter'
        ? [{ name: producer === 'fitRouter' ? 'router' : 'adapter', value: ref.sha256 }]
        : [];
    }),
  );
  return made.flat();
}

/** As `campaign show` prints it. */
export function shownText({ task, attempt, outcome, ...shown }: ShownRollout, columns = 60): string {
  const { facts, madeFrom, messages, cited } = shown;
  const lines = (text: string, indent = '') =>
    plainText(text)
      .split('\n')
      .flatMap((line) => wrap(line, columns - indent.length, { cutsWords: true }))
      .map((line) => indent + line);
  return [
    ...lines(`${task}, attempt ${attempt}: ${outcome}`),
    ...[...facts, ...madeFrom].flatMap(({ name, value }) => lines(`${name}: ${value}`)),
    ...messages.flatMap(({ message, role, text, missing }) => [
      '',
      `${message} ${messageRoles[role]}`,
      ...lines(missing ? `${text}\n(${missing} characters more)` : text, '  '),
      ...cited.flatMap((one) => (one.message === message ? lines(`<- ${one.says}`) : [])),
    ]),
  ].join('\n');
}
