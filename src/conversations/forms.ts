/** Brings conversations of tau-bench, tau2-bench, verifiers and AgentDojo into the form of docs/conversations.md, which is checked afterwards. */
type Fields = Record<string, unknown>;

export const fieldsIn = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const listIn = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fieldsIn) : []);

/** Returns the conversations of a file that is one JSON value: a list of them, results of tau2-bench, or one alone. */
export function conversationsIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.every((one) => fieldsIn(one)['role']) ? [{ messages: value }] : value;
  const { simulations, tasks, info } = fieldsIn(value);
  if (!Array.isArray(simulations)) return [value];
  const { policy: system } = fieldsIn(fieldsIn(info)['environment_info']);
  const criteria = new Map(listIn(tasks).map((task) => [task['id'], fieldsIn(task['evaluation_criteria'])]));
  return listIn(simulations).map(({ messages, ...simulation }) => {
    const { actions, communicate_info: outputs } = criteria.get(simulation['task_id']) ?? {};
    const traj = listIn(messages).map(({ id, ...message }) => ({ tool_call_id: id, ...message }));
    return { ...simulation, id: null, system, traj, info: { task: { actions, outputs } } };
  });
}

/** Renames the fields of other projects. */
export function toLine(line: Fields): Fields {
  const { prompt, completion, id, example_id = id, reward, error } = line;
  const { oai_tools: tools, task: solved, error: crash } = fieldsIn(line['info']);
  if (Array.isArray(prompt) && Array.isArray(completion))
    return { task: example_id, messages: [...prompt, ...completion], reward, error, tools };
  const { task_id, task = task_id, trial, ...others } = withOutcome(line);
  const named = { ...others, task, id: id ?? (trial == null ? null : `${task}-${trial}`) };
  if (!Array.isArray(line['traj'])) return named;
  const { actions, outputs } = fieldsIn(solved);
  // Arguments are `kwargs` in tau-bench; tau2-bench lists calls of the user, too.
  const own = listIn(actions).filter(({ requestor }) => requestor !== 'user');
  const made = own.map(({ kwargs, ...action }) => ({ arguments: kwargs, ...action }));
  const reference = actions && { actions: made, outputs: outputs ?? [] };
  return { ...named, messages: line['traj'], error: crash, reference, traj: null, info: null };
}

/** Renames the outcome to `reward` or `passed`; the first of several names for it counts. */
function withOutcome(line: Fields): Fields {
  if ((line['reward'] ?? line['passed'] ?? line['success']) != null) return line;
  const { reward_info, resolved, utility, score, ...others } = line;
  const outcome = fieldsIn(reward_info)['reward'] ?? resolved ?? utility ?? score;
  return outcome == null ? line : { ...others, [typeof outcome === 'boolean' ? 'passed' : 'reward']: outcome };
}
