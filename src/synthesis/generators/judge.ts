/**
 * Last part of every generated module's text: reward, reference, the solution, and the shortcuts that must not pay. Invariant: a shortcut
 * is the solution of an agent that takes every instance for a special one ("always") or for a twin ("never").
 */
export const JUDGE = String.raw`
const denialOf = (state) => writeOf(state.requests[0].write).precondition?.denial;
const mustDeny = (state) => planOf(state.special).forbidden;
const same = (a, b) => a.name === b.name && Object.keys(b.arguments).every((n) => a.arguments[n] === b.arguments[n]);

// 1 for the wanted action; less for the right record with a wrong value, and for the right tool on another record.
function likeness(action, wanted) {
  if (action.name !== wanted.name) return 0;
  if (same(action, wanted)) return 1;
  const identity = writeOf(wanted.name).arguments.filter((a) => a.from === 'record').map((a) => a.name);
  return identity.length > 0 && identity.every((n) => action.arguments[n] === wanted.arguments[n]) ? 0.6 : 0.3;
}

export function reward(state) {
  const { wanted, made, texts, amount } = state;
  const exact = made.length === wanted.length && wanted.every((w) => made.some((m) => same(m, w)));
  const denial = denialOf(state);
  const denied = denial !== undefined && says(texts, denial);
  const amounts = texts.join(' ').match(/\b\d+\b/g) ?? [];
  const told = amount === null
    ? !params.special.question || amounts.length === 0
    : amounts.length > 0 && amounts.every((a) => a === String(amount));
  const asked = state.asked === planOf(state.special).keyMissing && !state.invented;
  const right = state.done && state.looked && exact && denied === mustDeny(state) && told && asked;
  const likest = wanted.map((w) => Math.max(0, ...made.map((m) => likeness(m, w))));
  const actions = wanted.length === 0 ? 0 : likest.reduce((a, b) => a + b, 0) / wanted.length;
  const needed = planOf(state.special).keyMissing && state.asked && !state.invented;
  const flags = { lookup: state.looked, exact, denial: denied === mustDeny(state), told, asked, special: state.special };
  return {
    reward: right ? 1 : (state.looked ? 0.05 : 0) + (needed ? 0.05 : 0) + 0.15 * actions,
    breakdown: { ...Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, flag ? 1 : 0])), actions },
  };
}

export function reference(state) {
  const tell = mustDeny(state) ? [denialOf(state)] : state.amount === null ? [] : [String(state.amount)];
  return { actions: state.wanted, tell };
}

// The messages of an agent that believes that the instance is special or a twin; "first" acts on whatever is listed first.
function messagesOf(state, special, first) {
  const plan = planOf(special);
  const messages = [];
  const say = (content) => messages.push({ role: 'assistant', content });
  const use = (name, given) =>
    messages.push({ role: 'assistant', content: '', toolCalls: [{ id: 'call_' + messages.length, name, arguments: given }] });
  if (plan.keyMissing) say(world.ask.question);
  const guess = draw(randomOf('guess ' + state.seed), world.lookup.keyVocabulary);
  use(world.lookup.tool, { [world.lookup.key]: state.known || plan.keyMissing ? state.key : guess });
  const parts = [];
  if (plan.forbidden) parts.push(denialOf(state) + ' .');
  else {
    const attended = state.requests.slice(0, plan.requests);
    for (const { write, said, record, lookalike } of attended) {
      const taken = record === null ? {} : first ? state.records[0] : lookalike && !plan.similar ? lookalike : record;
      use(write, argumentsOf(writeOf(write), taken, said, plan.marker, state.key));
    }
    if (plan.requests > attended.length) {
      const tool = world.writes.find((w) => w.onRecord);
      const other = state.records.find((record) => !state.requests.some((r) => r.record === record));
      if (other) use(tool.tool, argumentsOf(tool, other, state.requests[0].said, false, state.key));
    }
    parts.push('done .');
  }
  if (plan.question) parts.push(amountOf(state.requests[0], plan.marker) + ' .');
  say(parts.join(' '));
  return messages;
}

export function solve(seed) {
  const state = make(seed);
  return messagesOf(state, state.special, false);
}

export function shortcuts(seed) {
  const state = make(seed);
  const never = messagesOf(state, false, false);
  // To look out for similar records always is what is trained: the shortcut there is to take the first.
  if (params.special.similar) return { never, first: messagesOf(state, state.special, true) };
  return { always: messagesOf(state, true, false), never };
}
`;
