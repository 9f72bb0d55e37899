/**
 * The solution of an instance, and the shortcuts that must not pay. Invariant: a shortcut is the solution of an agent that takes every
 * instance for a special one ("always") or for a twin ("never"), acts on whatever is listed first ("first"), or has a part of a pair alone.
 */
import { mainOf, memberOf, planOf } from './members.js';
import { draw, randomOf } from './random.js';
import { amountOf, argumentsOf, denialOf, nameOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../../../domain/messages').AssistantMessage} AssistantMessage */

/**
 * The messages of an agent that takes the instance for one of this plan.
 * @param {Params} params
 * @param {Instance} state
 * @param {{plan: Plan, first?: boolean}} belief `first`: it acts on the record that is listed first
 */
function messagesOf(params, state, { plan, first = false }) {
  const { world } = params;
  const { requests, records, key } = state;
  const main = mainOf(requests, memberOf(params, state.seed).turned);
  /** @type {AssistantMessage[]} */
  const messages = [];
  const say = (/** @type {string} */ content) => messages.push({ role: 'assistant', content });
  const use = (/** @type {string} */ name, /** @type {Record<string, unknown>} */ given) =>
    messages.push({
      role: 'assistant',
      content: '',
      toolCalls: [{ id: `call_${messages.length}`, name, arguments: given }],
    });
  if (plan.keyMissing && world.ask) say(world.ask.question);
  const guess = draw(randomOf(`guess ${state.seed}`), world.lookup.keyVocabulary);
  use(world.lookup.tool, { [world.lookup.key]: state.known || plan.keyMissing ? key : guess });
  /** @type {(request: typeof main) => import('../instance').Values | null} */
  const taken = ({ record, lookalike }) =>
    record && first ? (records[0] ?? null) : lookalike && !plan.similar ? lookalike : record;
  const attended = requests.slice(0, plan.requests);
  // Whoever takes another record finds that one allowed.
  const refused = attended.filter((one) => plan.forbidden && one === main && taken(one) === main.record);
  const done = attended.filter((one) => !refused.includes(one));
  for (const request of done) {
    const { write, said } = request;
    const marked = plan.marker && request === main;
    use(write, argumentsOf(writeOf(params, write), { record: taken(request) ?? {}, said, marked, key }));
  }
  const tool = world.writes.find((write) => write.onRecord);
  const asked = requests.map(({ record }) => record && nameOf(params, record));
  const other = records.find((record) => !asked.includes(nameOf(params, record)));
  const more = plan.requests > attended.length && tool && other;
  if (more) use(tool.tool, argumentsOf(tool, { record: other, said: requests[0].said, marked: false, key }));
  const parts = [];
  if (done.length > 0 || more) parts.push('done .');
  if (refused.length > 0) parts.push(`${denialOf(params, main)} .`);
  if (plan.question && main.record) parts.push(`${amountOf(params, { ...main, record: taken(main) }, plan.marker)} .`);
  say(parts.join(' '));
  return messages;
}

/** @type {(params: Params, state: Instance) => AssistantMessage[]} */
export const solutionOf = (params, state) => messagesOf(params, state, { plan: memberOf(params, state.seed).plan });

/** @type {(params: Params, state: Instance) => Record<string, AssistantMessage[]>} */
export function shortcutsOf(params, state) {
  const { family, branch, plan } = memberOf(params, state.seed);
  const believing = (/** @type {string} */ other) => messagesOf(params, state, { plan: planOf(family, other) });
  if ('both' in family.plans) {
    const [hasFirst, hasSecond] = [branch !== 'second' && branch !== 'none', branch !== 'first' && branch !== 'none'];
    return {
      always: believing('both'),
      never: believing('none'),
      first_alone: believing(hasFirst ? 'first' : 'none'),
      second_alone: believing(hasSecond ? 'second' : 'none'),
      one_at_a_time: believing(branch === 'both' ? 'first' : branch),
    };
  }
  const never = believing('twin');
  // To look out for similar records always is what is trained: the shortcut there is to take the first.
  if (family.plans.special?.similar) return { never, first: messagesOf(params, state, { plan, first: true }) };
  return { always: believing('special'), never };
}
