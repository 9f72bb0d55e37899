/** What a learner says (docs/learner-protocol.md). Invariant: a line outside the protocol ends it. */
import { z } from 'zod';
import { promptSchema } from '../domain/rollout';
import { fail } from './context';

const step = z.number().int().nonnegative();
/** What was learned so far: the folder of an adapter, a prompt, or nothing yet that the base model is without. */
const learnedSchema = z.union([
  z.strictObject({ adapter: z.string() }),
  z.strictObject({ prompt: promptSchema }),
  z.strictObject({ base: z.literal(true) }),
]);
export type Learned = z.infer<typeof learnedSchema>;

const messageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), step }),
  z.object({
    type: z.literal('rollouts'),
    id: z.number().int(),
    step,
    tasks: z.array(z.string()),
    group_size: z.number().int(),
    policy: learnedSchema,
    /** Token rows to train on, or whole conversations to read. */
    content: z.enum(['rows', 'messages']).default('rows'),
  }),
  z.object({
    type: z.literal('reply'),
    id: z.number().int(),
    step,
    messages: z.array(z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })).min(1),
    /** How often the same was asked before: every time has a reply of its own. */
    again: z.number().int().nonnegative().default(0),
  }),
  z.object({ type: z.literal('step'), step, metrics: z.record(z.string(), z.number().nullable()) }),
  z.object({ type: z.literal('checkpoint'), step, policy: learnedSchema }),
  z.object({ type: z.literal('done'), step }),
  z.object({ type: z.literal('interrupted'), step }),
  z.object({ type: z.literal('error'), error: z.object({ type: z.string(), message: z.string() }) }),
]);
export type LearnerMessage = z.infer<typeof messageSchema>;
export type RolloutsRequest = Extract<LearnerMessage, { type: 'rollouts' }>;
export type ReplyRequest = Extract<LearnerMessage, { type: 'reply' }>;

export function parseMessage(line: string): LearnerMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // No JSON is outside the protocol like any other line.
  }
  const parsed = messageSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw fail('TrainerDied', `the trainer wrote a line outside the protocol: ${line.slice(0, 200)}`);
}
