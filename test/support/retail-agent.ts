/**
 * An imperfect retail agent and its customer, scripted. Invariant: the agent carries out the task's reference actions and makes the given
 * mistake, or none; whoever reads the conversation can see it.
 */
import type { AssistantMessage } from '../../src/domain/messages';
import type { RetailTask, RetailWrite } from './retail-data';
import {
  unconfirmed,
  withWrongOption,
  withWrongPayment,
  wrongOptions,
  type Mistake,
  type Retail,
} from './retail-mistakes';
import { describeWrite, offer } from './retail-words';

export interface Script {
  agent: AssistantMessage[];
  /** What the customer says, in order. */
  user: string[];
}

type Pick = <Item>(items: readonly Item[]) => Item;

export function retailScript({
  task,
  mistake,
  random,
  ...retail
}: Retail & { task: RetailTask; mistake: Mistake | undefined; random: () => number }): Script {
  const { user: customer, scenario } = task;
  const pick: Pick = (items) => items[Math.floor(random() * items.length)]!;
  const script: Script = { agent: [], user: [scenario.asks] };
  const say = (content: string, answer: string) => {
    script.agent.push({ role: 'assistant', content });
    script.user.push(answer);
  };
  const use = (name: string, values: Record<string, unknown>) => {
    const id = `call_${script.agent.length}`;
    script.agent.push({ role: 'assistant', content: '', toolCalls: [{ id, name, arguments: values }] });
  };
  const write = ({ name, arguments: values }: RetailWrite) => use(name, values);
  const words = (one: RetailWrite) => describeWrite(one, { task, variants: retail.variants });

  if (mistake === 'keep_working') {
    use('transfer_to_human_agents', { summary: `The customer asks: ${scenario.asks}` });
    say('YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.', '###TRANSFER###');
    return script;
  }

  say(
    pick([
      'I can help you with that. Which email address do you have with us, or else what is your name and zip code?',
      'Of course. First I have to find your account: please tell me your email, or your full name with your zip code.',
      'Happy to help. May I have your email address, or your first and last name and your zip code?',
    ]),
    identityWords(task),
  );
  const { first_name, last_name } = customer.name;
  if (task.byEmail) use('find_user_id_by_email', { email: customer.email });
  else use('find_user_id_by_name_zip', { first_name, last_name, zip: customer.address.zip });

  if (mistake === 'look_up_identifiers') {
    for (let n = 0; n < 2; n++) use('get_order_details', { order_id: unknownOrder(retail, random) });
    say(
      pick([
        'I am sorry, there is no such order in our system, so I cannot make this change for you.',
        'I could not find your order in the system. Without it there is nothing that I can do, I am afraid.',
      ]),
      pick([
        'I never gave you a number! I thought that you see my orders in my account. Goodbye. ###STOP###',
        'But I did not name any order number. Can you not see what I ordered? Never mind. ###STOP###',
      ]),
    );
    return script;
  }

  use('get_user_details', { user_id: customer.user_id });
  const orders = new Set(task.writes.flatMap(({ arguments: { order_id: order } }) => order ?? []));
  for (const order of orders) use('get_order_details', { order_id: order });
  const news = task.writes.flatMap(({ arguments: { new_item_ids: ids = [] } }) => ids);
  for (const product of new Set(news.map((id) => retail.variants.get(id)!.product)))
    use('get_product_details', { product_id: product });

  if (mistake === 'confirm_first') {
    const hasty = unconfirmed({ ...retail, task })!;
    write(hasty);
    say(
      `That is done. What I did: ${words(hasty)}. Is there anything else?`,
      pick([
        'Wait, you did that without asking me! That is not how I wanted it. ###STOP###',
        'I never said yes to that. I would have told you that this is not what I want. ###STOP###',
        'You should have checked with me before you did it. This is wrong now. ###STOP###',
      ]),
    );
    return script;
  }

  if (scenario.change !== undefined) {
    say(
      pick([
        'I have found what you mean in your account. Shall I go ahead with what you asked for? Please confirm with yes.',
        'Everything is there. Before I change anything, please confirm that this is all, and that I may go ahead (yes or no).',
      ]),
      scenario.change,
    );
  }

  const option = mistake === 'match_constraints' ? withWrongOption({ ...retail, task })! : undefined;
  const paid = mistake === 'requested_payment' ? withWrongPayment({ ...retail, task })! : undefined;
  const writes = option?.writes ?? paid ?? task.writes;
  const last = mistake === 'complete_all' ? 1 + Math.floor(random() * (writes.length - 1)) : writes.length;
  for (const [n, one] of writes.slice(0, last).entries()) {
    const compared = option?.at[0] === n && scenario.price ? comparison({ ...retail, task, one, at: option.at }) : '';
    say(
      `${compared}${pick(['I would now', 'With your permission I will', 'The next step: I'])} ${words(one)}. ` +
        pick(['Is that right (yes/no)?', 'Do you confirm (yes)?', 'Shall I do so?']),
      pick(['Yes, please.', 'Yes.', 'Yes, go ahead.', 'Yes, that is fine.']),
    );
    write(one);
  }
  if (mistake === 'complete_all') {
    const done = pick([
      'That is done, and with it everything is settled.',
      'Done! All that you asked for is taken care of.',
    ]);
    say(`${done} Have a nice day!`, pick(['Oh, good. Thanks. ###STOP###', 'Great, thank you. Bye. ###STOP###']));
    return script;
  }
  const told = (mistake === 'calculate_totals' ? scenario.mistells : scenario.tells) ?? '';
  say(
    ['All of that is done.', told, 'Is there anything else that I can do for you?'].filter(Boolean).join(' '),
    pick(['No, that is all. Thank you! ###STOP###', 'That was everything, thanks. ###STOP###']),
  );
  return script;
}

function identityWords({ byEmail, user: { email, name, address } }: RetailTask): string {
  if (byEmail) return `My email is ${email}.`;
  return `I am ${name.first_name} ${name.last_name}, zip code ${address.zip}.`;
}

/** An order number that nobody has. */
function unknownOrder({ database }: Retail, random: () => number): string {
  for (;;) {
    const order = `#W${1_000_000 + Math.floor(random() * 9_000_000)}`;
    if (!(order in database.orders)) return order;
  }
}

/** Three options with their prices, the right one among them, before the wrong one is taken. */
function comparison({
  one,
  at,
  ...more
}: Retail & { task: RetailTask; one: RetailWrite; at: [number, number] }): string {
  const chosen = more.variants.get(one.arguments.new_item_ids![at[1]]!)!;
  const right = more.variants.get(more.task.writes[at[0]]!.arguments.new_item_ids![at[1]]!)!;
  const [, third] = wrongOptions({ ...more, at });
  const offers = [chosen, right, ...(third ? [third] : [])].sort((a, b) => (a.id < b.id ? -1 : 1));
  const best = more.task.scenario.price === 'cheapest' ? 'cheapest' : 'most expensive';
  return `Of the ${chosen.name} we have, for example: ${offers.map(offer).join('; ')}. I take ${offer(chosen)} as the ${best}. `;
}
