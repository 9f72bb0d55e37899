/** tau2-bench's retail data as the package holds it, for the scripted agent and customer; nothing of it is written anywhere else. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { python } from './tau2';

const options = z.record(z.string(), z.string());
const itemSchema = z.object({
  name: z.string(),
  product_id: z.string(),
  item_id: z.string(),
  price: z.number(),
  options,
});
const paymentSchema = z.object({
  source: z.enum(['credit_card', 'paypal', 'gift_card']),
  id: z.string(),
  brand: z.string().optional(),
  last_four: z.string().optional(),
});
const databaseSchema = z.object({
  products: z.record(
    z.string(),
    z.object({
      name: z.string(),
      product_id: z.string(),
      variants: z.record(
        z.string(),
        z.object({ item_id: z.string(), options, available: z.boolean(), price: z.number() }),
      ),
    }),
  ),
  users: z.record(
    z.string(),
    z.object({
      user_id: z.string(),
      name: z.object({ first_name: z.string(), last_name: z.string() }),
      address: z.object({ zip: z.string() }),
      email: z.string(),
      payment_methods: z.record(z.string(), paymentSchema),
    }),
  ),
  orders: z.record(
    z.string(),
    z.object({
      user_id: z.string(),
      items: z.array(itemSchema),
      payment_history: z.array(z.object({ payment_method_id: z.string() })),
    }),
  ),
});
export type RetailDatabase = z.infer<typeof databaseSchema>;
export type Payment = z.infer<typeof paymentSchema>;

const writeSchema = z.object({
  name: z.string(),
  arguments: z.looseObject({
    order_id: z.string().optional(),
    user_id: z.string().optional(),
    item_ids: z.array(z.string()).optional(),
    new_item_ids: z.array(z.string()).optional(),
    payment_method_id: z.string().optional(),
    reason: z.string().optional(),
  }),
});
export type RetailWrite = z.infer<typeof writeSchema>;

const taskSchema = z.object({
  id: z.string(),
  user_scenario: z.object({ instructions: z.object({ reason_for_call: z.string(), known_info: z.string() }) }),
  evaluation_criteria: z.object({ actions: z.array(writeSchema) }),
});

const scenarioSchema = z.strictObject({
  asks: z.string().max(300),
  change: z.string().optional(),
  tells: z.string().optional(),
  mistells: z.string().optional(),
  price: z.enum(['cheapest', 'dearest']).optional(),
  payment: z.boolean().default(false),
  option: z.tuple([z.number().int(), z.number().int()]).optional(),
});
export type RetailScenario = z.infer<typeof scenarioSchema>;

export interface RetailTask {
  /** As the benchmark's environment calls it: retail/N. */
  id: string;
  /** Stands in the customer's instructions. */
  reason: string;
  /** The customer gives an email address, not name and zip code. */
  byEmail: boolean;
  user: RetailDatabase['users'][string];
  writes: RetailWrite[];
  scenario: RetailScenario;
}

const WRITES = /^(modify|cancel|return|exchange)_/;

/** The tasks that `scenarios` names, with the benchmark's database. */
export function retailTasks(scenarios: string): { tasks: RetailTask[]; database: RetailDatabase } {
  const where = 'from importlib.resources import files; print(files("tau2") / "data/tau2/domains/retail")';
  const folder = execFileSync(python, ['-c', where], { stdio: ['ignore', 'pipe', 'ignore'] })
    .toString()
    .trim()
    .split('\n')
    .at(-1)!;
  const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const database = databaseSchema.parse(read('db.json'));
  const known = new Map(
    z
      .array(taskSchema)
      .parse(read('tasks.json'))
      .map((task) => [task.id, task]),
  );
  const told = z.record(z.string(), scenarioSchema).parse(parse(readFileSync(scenarios, 'utf8')));
  const tasks = Object.entries(told).map(([id, scenario]): RetailTask => {
    const task = known.get(id);
    if (!task) throw new Error(`${scenarios}: "${id}" is no retail task of tau2-bench`);
    const { reason_for_call: reason, known_info: info } = task.user_scenario.instructions;
    const writes = task.evaluation_criteria.actions.filter(({ name }) => WRITES.test(name));
    const owner = writes.map(({ arguments: { order_id: order, user_id: user } }) =>
      order === undefined ? user! : database.orders[order]!.user_id,
    );
    return {
      id: `retail/${id}`,
      reason,
      byEmail: info.includes('@'),
      user: database.users[owner[0]!]!,
      writes,
      scenario,
    };
  });
  return { tasks, database };
}
