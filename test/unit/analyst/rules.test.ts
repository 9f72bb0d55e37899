/** The shop's analyst on a target that shares nothing with the shop; acceptance.test.ts holds its classes of error. */
import { capabilities } from '../../../examples/shop/rules/errors';
import { rules } from '../../../examples/shop/rules/rules';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { EnvironmentDescription, Reference } from '../../../src/domain/environment';
import type { JsonSchema, Message, ToolSchema } from '../../../src/domain/messages';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { checkPartition } from '../../../src/domain/selection';
import { trajectory as played } from '../../support/analyst-llm';
import { noLedger } from '../../support/memory-ledger';

const tool = (
  name: string,
  properties: Record<string, JsonSchema>,
  output?: Record<string, JsonSchema>,
): ToolSchema => ({
  ...{ name, description: name, parameters: { type: 'object', properties } },
  annotations: { readOnlyHint: output !== undefined },
  ...(output && { outputSchema: { type: 'object', properties: output } }),
});
const booking: JsonSchema = { type: 'string', pattern: '^B[0-9]{3}$' };
const city: JsonSchema = { type: 'string', enum: ['new york', 'lisbon', 'oslo'] };
const time: JsonSchema = { type: 'string', enum: ['morning', 'evening'] };
const fare: JsonSchema = { type: 'string', enum: ['basic', 'flexible'] };
const member: JsonSchema = { type: 'string', pattern: '^M[0-9]{2}$' };
const tools = [
  tool('find_bookings', { member }, { booking, city, time, fare, paid: { type: 'integer' } }),
  tool('cancel_booking', { booking, refund: { type: 'integer' } }),
  tool('move_booking', { booking, city, time }),
];
const description: EnvironmentDescription = {
  ...{ name: 'flights', version: '1', policy: '', tools, maxSteps: 10, hasReference: true },
};

const bookings = 'B101 new york morning flexible 200 ; B202 new york evening basic 90 ; B303 oslo morning basic 50';
const cancel = (id: string, refund: number) => ({ name: 'cancel_booking', arguments: { booking: id, refund } });
const move = (id: string, to: string, at: string) => ({
  name: 'move_booking',
  arguments: { booking: id, city: to, time: at },
});
const find = (member: string) => ({ name: 'find_bookings', arguments: { member } });

type Turn = string | { name: string; arguments: Record<string, unknown>; observation?: string };
interface Told {
  request: string;
  turns: Turn[];
  reference: Reference;
  reward?: number;
  key?: string;
}
/** A rollout from the user's request and the agent's turns; text that ends in "?" is answered by the member number. */
function trajectory({ request, turns, reference, reward = 0, key = 'k' }: Told): ScoredRollout {
  const messages: Message[] = [
    { role: 'system', content: 'Help with bookings.' },
    { role: 'user', content: request },
  ];
  for (const [i, turn] of turns.entries()) {
    if (typeof turn === 'string') {
      const answer = turn.endsWith('?') ? 'My number is M07.' : 'Bye.';
      messages.push({ role: 'assistant', content: turn }, { role: 'user', content: answer });
      continue;
    }
    const { observation = turn.name === 'find_bookings' ? bookings : 'ok', ...call } = turn;
    messages.push({ role: 'assistant', content: '', toolCalls: [{ id: `c${i}`, ...call }] });
    messages.push({ role: 'tool', toolCallId: `c${i}`, content: observation });
  }
  return { ...played({ task: 't', passed: reward === 1, messages }), key, reference };
}

const DENIAL = 'that is not possible';

describe('discovery and labels', () => {
  const request = 'I am M07. Cancel my New York morning flight. How much do I get back?';
  const reference = { actions: [cancel('B101', 180)], tell: ['180'] };
  const cancelling = (key: string, said: string, reward: number) =>
    trajectory({ request, reference, turns: [find('M07'), cancel('B101', 180), said], reward, key });
  const untold = (i: number) => cancelling(`failed-${i}`, 'Done.', 0);
  const good = (i: number) => cancelling(`passed-${i}`, 'Done. You get 180.', 1);
  const rollouts = [...Array.from({ length: 12 }, (_, i) => untold(i)), ...[0, 1, 2].map(good)];
  const analyst = rules.open({ kind: 'rules' }, undefined);
  const work = { progress: () => {}, signal: new AbortController().signal, ledger: noLedger };
  const keysOf = (from: ScoredRollout[]) => from.map(({ key }) => key);
  const rule = selectionRuleSchema.parse({});
  const discover = ({ from = rollouts, quotable = keysOf(rollouts), denied = description } = {}) =>
    analyst.discover({
      ...{ rollouts: from, quotable: new Set(quotable), description: denied, rule, seed: 1 },
      ...work,
    });
  const candidates = [{ name: capabilities.untold_information.name, definition: '', examples: [] }];
  const label = ({ from = rollouts, pass = 3, seed = 7 } = {}) =>
    analyst.label({ rollouts: from, candidates, description, pass, seed, ...work });

  it('refuses a rule of a known kind and a wrong form, for good', async () => {
    const wrong = { ...description, rules: [{ kind: 'other' }, { kind: 'tell', question: 'how much' }] };
    expect(analyst.unsuited?.(wrong, rule)).toMatch(/^rules\.1 /);
    await expect(discover({ denied: wrong })).rejects.toMatchObject({ type: 'BadEnvironment', retryable: false });
  });

  it('shows only what may be quoted, and finds no less for it', async () => {
    const quotable = ['failed-7', 'failed-3', 'passed-2', 'of another target'];
    const examples = ['failed-3', 'failed-7', 'passed-2'];
    expect(await discover({ quotable })).toMatchObject({ candidates: [{ examples }] });
    const name = 'tell_requested_information';
    expect(await discover({ quotable: [] })).toMatchObject({ candidates: [{ name, examples: [] }] });
    // Without contrast there is nothing to find.
    for (const from of [[untold(0)], [good(0)], []]) expect((await discover({ from })).candidates).toEqual([]);
  });

  it('knows a refusal by the rules of the policy', async () => {
    const refused = (i: number) =>
      trajectory({
        request: 'I am M07. Move the flight B303 to Lisbon in the evening.',
        reference: { actions: [move('B303', 'lisbon', 'evening')], tell: [] },
        turns: [{ ...find('M07'), observation: 'B303 oslo evening basic 50' }, `Sorry, ${DENIAL}.`],
        key: `failed-${i}`,
      });
    const said = { tool: 'move_booking', field: 'fare', value: 'flexible', denial: 'no way' };
    const withRule = (rule: object) => ({ ...description, rules: [{ kind: 'precondition', ...said, ...rule }] });
    const found = async (rule: object) =>
      (await discover({ from: [refused(0), good(0)], denied: withRule(rule) })).candidates.map(({ name }) => name);
    expect(await found({ denial: DENIAL })).toEqual(['perform_permitted_actions']);
    expect(await found({})).toEqual([]);
    // A kind of rule that only somebody else knows.
    expect(await found({ kind: 'quota' })).toEqual(['perform_permitted_actions']);
  });

  it('labels half of the rollouts, an exact partition, the same for the same seed and any order', async () => {
    const one = await label();
    expect(checkPartition(one)).toEqual([]);
    expect(one.totals.total_failed + one.totals.total_passed).toBe(8);
    const { lacking_failed, present_passed, ...others } = one.labels['tell_requested_information'] ?? {};
    expect(lacking_failed).toHaveLength(one.totals.total_failed);
    expect(present_passed).toHaveLength(one.totals.total_passed);
    expect(Object.values(others).flat()).toEqual([]);
    expect(keysOf(rollouts)).toEqual(expect.arrayContaining(lacking_failed ?? []));
    expect(await label({ from: [...rollouts].reverse() })).toEqual(one);
    expect(await label({ pass: 4 })).not.toEqual({ ...one, attempt: 4 });
    expect(await label({ seed: 8 })).not.toEqual(one);
  });

  it('refuses what it cannot judge', async () => {
    const polite = [{ name: 'be_polite', definition: '', examples: [] }];
    const asked = analyst.label({ rollouts, candidates: polite, description, pass: 0, seed: 1, ...work });
    await expect(asked).rejects.toMatchObject({ type: 'BadInput' });
    const unknown: ScoredRollout = good(0);
    delete unknown.reference;
    await expect(discover({ from: [unknown] })).rejects.toMatchObject({ type: 'BadEnvironment' });
  });
});
