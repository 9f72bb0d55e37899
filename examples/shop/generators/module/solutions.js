/**
 * The solution of an instance, and the shortcuts that must not pay: the solutions of an agent that takes every
 * instance for a special one ("always") or for a twin ("never"), or acts on whatever is listed first ("first").
 */
import { draw, randomOf } from './random.js';
import { amountOf, argumentsOf, denialOf, nameOf, planOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Instance} Instance */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('trace-campaign/plugin').AssistantMessage} AssistantMessage */

/**
 * The messages of an agent that takes the instance for one of this plan.
 * @param {Params} params
 * @param {Instance} state
 * @param {{plan: Plan, first?: boolean}} belief `first`: it acts on the record that is listed first
 */
function messagesOf(params, state, { plan, first = false }) {
  const { world } = params;
  const { requests, records, key } = state;
  const [main] = requests;
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
  /** @type {(request: typeof main) => import('../params').Values | null} */
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
export const solutionOf = (params, state) => messagesOf(params, state, { plan: planOf(params, state.seed) });

/** @type {(params: Params, state: Instance) => Record<string, AssistantMessage[]>} */
export function shortcutsOf(params, state) {
  const { special, twin } = params.plans;
  const never = messagesOf(params, state, { plan: twin });
  // To look out for similar records always is what is trained: the shortcut there is to take the first.
  if (special.similar) {
    const first = messagesOf(params, state, { plan: planOf(params, state.seed), first: true });
    return { never, first };
  }
  return { always: messagesOf(params, state, { plan: special }), never };
}
