/** Plans for tau2-bench's tasks: right, wrong, and random ones. All are functions of the task's id. */
import { seededRandom } from '../../src/domain/seeds';
import type { AssistantMessage, UserMessage } from '../../src/domain/messages';
import { run, STOP, type Domain, type Plan } from './tau2';

interface Action {
  name: string;
  arguments: Record<string, unknown>;
}
/** As tau2-bench holds it. */
export interface Solution {
  actions: (Action & { requestor: 'assistant' | 'user'; writes: boolean })[];
  tell: string[];
  /** In natural language, for a judge. */
  assertions: string[];
}

export const solutionsOf = (...domains: Domain[]): Map<string, Solution> =>
  new Map(Object.entries(JSON.parse(run('bridges.tests.reference', domains)) as Record<string, Solution>));

const says = (content: string): AssistantMessage => ({ role: 'assistant', content });
const calls = (actions: Action[], content = ''): AssistantMessage => {
  return { role: 'assistant', content, toolCalls: withIds(actions) };
};
const userSays = (content: string): UserMessage => ({ role: 'user', content });
const userCalls = (actions: Action[]): UserMessage => ({ role: 'user', content: '', toolCalls: withIds(actions) });
const withIds = (actions: Action[]) =>
  actions.map(({ name, arguments: values }, n) => ({ id: `${name}-${n}`, name, arguments: values }));

/** A plan with one call a message: the agent hands over for the user's part and gives the required information; the user ends it. */
export function rightPlan({ actions, tell }: Solution): Plan {
  const plan: Plan = { agent: [], user: [] };
  let acting: 'assistant' | 'user' = 'assistant';
  for (const { requestor, ...action } of actions) {
    if (requestor === 'user' && acting === 'assistant') plan.agent.push(says('please look at your phone'));
    if (requestor === 'assistant' && acting === 'user') plan.user.push(userSays('done'));
    if (requestor === 'assistant') plan.agent.push(calls([action]));
    else plan.user.push(userCalls([action]));
    acting = requestor;
  }
  if (acting === 'user') plan.user.push(userSays('done'));
  plan.agent.push(says(`that is all. ${tell.join('; ')}`));
  plan.user.push(userSays(`thanks ${STOP}`));
  return plan;
}

/** A write that the tools accept, for a user with whom no task deals. */
const UNWANTED: Partial<Record<Domain, Action>> = {
  airline: { name: 'send_certificate', arguments: { user_id: 'mia_li_3668', amount: 1 } },
  retail: {
    name: 'modify_user_address',
    arguments: {
      user_id: 'noah_brown_6181',
      address1: 'Nowhere 1',
      address2: '',
      city: 'X',
      state: 'X',
      country: 'X',
      zip: '0',
    },
  },
};

/** All that is right, and one write too many. */
export function unwantedPlan(domain: Domain, solution: Solution): Plan {
  const plan = rightPlan(solution);
  plan.agent.unshift(calls([UNWANTED[domain]!]));
  return plan;
}

/** The last write with another value in one of its arguments. */
export function alteredPlan(solution: Solution): Plan {
  const last = solution.actions.map(({ writes }) => writes).lastIndexOf(true);
  const actions = solution.actions.map((action, n) => (n === last ? { ...action, ...altered(action, 0) } : action));
  return rightPlan({ ...solution, actions });
}

/** The chosen argument gets another value of its type. */
function altered({ name, arguments: values }: Action, which: number): Action {
  const fields = Object.keys(values);
  const field = fields[which % fields.length];
  if (field === undefined) return { name, arguments: { unexpected: true } };
  const value = values[field];
  return { name, arguments: { ...values, [field]: typeof value === 'number' ? value + 1 : `${String(value)}x` } };
}

const ENDS = ['stop', 'early', 'transfer', 'scope', 'empty', 'errors', 'endless', 'context'] as const;

/** The right plan with mistakes of every kind in it, which ends in one of many ways. */
export function randomPlan(task: string, solution: Solution): Plan {
  const random = seededRandom('tau2', task);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const plan = rightPlan(solution);
  const mistaken = (action: Action): Action =>
    pick<Action>([
      altered(action, Math.floor(random() * 8)),
      { name: `${action.name}_now`, arguments: action.arguments },
      { name: action.name, arguments: {} },
      { name: action.name, arguments: { ...action.arguments, self: null, extra: [1, { a: 'ü' }] } },
      {
        name: action.name,
        arguments: Object.fromEntries(Object.keys(action.arguments).map((key) => [key, [null, 7]])),
      },
      { name: 'calculate', arguments: { expression: pick(['2 + 2', '1 / 0', 'open("x")', '(']) } },
    ]);

  plan.agent = plan.agent.flatMap((message): Plan['agent'] => {
    const [action] = message === 'context is full' ? [] : (message.toolCalls ?? []);
    if (!action || random() < 0.7) return [message];
    const kind = random();
    if (kind < 0.15) return [];
    if (kind < 0.3) return [message, message];
    if (kind < 0.45) return [calls([action], 'let me see')];
    if (kind < 0.6) return [calls([action, mistaken(action), action])];
    if (kind < 0.7) return [says('one moment'), message];
    return [calls([mistaken(action)])];
  });
  plan.user = plan.user.flatMap((message): UserMessage[] => {
    const [action] = message.toolCalls ?? [];
    if (!action || random() < 0.7) return [message];
    const kind = random();
    if (kind < 0.3) return [];
    if (kind < 0.6) return [userCalls([mistaken(action), action])];
    return [userSays('which button?'), message];
  });

  const end = random() < 0.5 ? 'stop' : pick(ENDS);
  const cut = Math.floor(random() * (plan.agent.length + 1));
  const early = Math.floor(random() * plan.user.length);
  if (end === 'early') plan.user.splice(early, Infinity, userSays(`never mind ${STOP}`));
  if (end === 'transfer') plan.user.splice(early, Infinity, userSays('###TRANSFER###'));
  if (end === 'scope') plan.user.splice(early, Infinity, userSays('###OUT-OF-SCOPE###'));
  if (end === 'empty') plan.agent.splice(cut, Infinity, says(' '));
  if (end === 'context') plan.agent.splice(cut, Infinity, 'context is full');
  if (end === 'errors')
    plan.agent.splice(cut, Infinity, calls(Array<Action>(12).fill({ name: 'nothing', arguments: {} })));
  if (end === 'endless') plan.user = Array<UserMessage>(300).fill(userSays('and then?'));
  return plan;
}
