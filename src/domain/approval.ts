/**
 * Approvals by a person before a campaign continues. A decision is about one subject, identified by its content (`of`): another selection, or another
 * version of an environment, needs a decision of its own.
 */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';

export const approvalRuleSchema = z
  .strictObject({
    capabilities: z.boolean().default(false).describe('Wait for approval of the selected capabilities.'),
    environments: z.boolean().default(false).describe('Wait for approval of every accepted environment.'),
    remindHours: z.number().positive().default(24).describe('Hours between reminders.'),
    timeoutHours: z.number().positive().optional().describe('Hours until `onTimeout` decides; default: never.'),
    onTimeout: z
      .enum(['approve', 'reject', 'fail'])
      .default('fail')
      .describe('`fail` fails the campaign or the capability.'),
  })
  .prefault({});

/** sha256 of the selection or the module that the person read. */
const of = z.string().optional();
const text = z.string().trim().min(1, 'it is blank');
const definedSchema = z.strictObject({ name: z.string(), definition: text });

const approvalSchema = z.strictObject({
  kind: z.literal('approve'),
  of,
  /** The approved capabilities, as edited; those that are not in the list are dropped. */
  capabilities: z.array(definedSchema).min(1, 'it is empty: reject all, with a reason').optional(),
  /** An edited environment module: it is tested and calibrated in the place of the next version. */
  module: artifactRefSchema.optional(),
});
export type Approval = z.infer<typeof approvalSchema>;

const rejectionSchema = z.strictObject({
  kind: z.literal('reject'),
  of,
  /** Capabilities that are left out; without it, all that wait. */
  names: z.array(z.string()).min(1, 'it is empty: name a capability, or leave it out for all').optional(),
  reason: text,
});

/** The input of the `decide` update. */
export const answerSchema = z.discriminatedUnion('kind', [approvalSchema, rejectionSchema]);
export type Answer = z.infer<typeof answerSchema>;

export const editedCapabilitiesSchema = approvalSchema.shape.capabilities.unwrap();

const decided = { by: z.enum(['person', 'timeout']), at: z.number() };
export const decisionSchema = z.discriminatedUnion('kind', [
  approvalSchema.extend(decided),
  rejectionSchema.extend(decided),
]);
export type Decision = z.infer<typeof decisionSchema>;

export const waitingSchema = z.object({
  what: z.enum(['capabilities', 'environment']),
  of: z.string(),
  /** The capabilities, or the one whose environment it is. */
  names: z.array(z.string()),
  /** Round of synthesis, of an environment. */
  round: z.number().optional(),
  /** ms since the epoch. */
  since: z.number(),
  reminded: z.boolean(),
  /** The time at which `approval.onTimeout` decides. */
  until: z.number().optional(),
});
/** A subject that waits for a person. */
export type Waiting = z.infer<typeof waitingSchema>;

export function approvalCommands(campaign: string, { what, names }: Pick<Waiting, 'what' | 'names'>) {
  const named = what === 'environment' ? ` ${names[0]}` : '';
  return {
    approve: `campaign approve ${campaign}${named}`,
    reject: `campaign reject ${campaign}${named || ' NAME...'} --reason TEXT`,
  };
}

/** `waits for approval of 3 capabilities since 2 h: campaign approve demo`. */
export function waitingText(o: { waiting: Waiting; campaign: string; since: string }): string {
  const { what, names, round, reminded } = o.waiting;
  const many = names.length === 1 ? '1 capability' : `${names.length} capabilities`;
  const thing = what === 'capabilities' ? many : `its environment, round ${round}`;
  const since = o.since === '' ? '' : `${what === 'capabilities' ? '' : ','} ${o.since}`;
  const { approve } = approvalCommands(o.campaign, o.waiting);
  return `${reminded ? 'reminder: ' : ''}waits for approval of ${thing}${since}: ${approve}`;
}

/** `approved`, `approved with edits, since nobody answered`. */
export function decisionText(decision: Decision): string {
  const edited = decision.kind === 'approve' && (decision.capabilities ?? decision.module) !== undefined;
  const which = decision.kind === 'reject' && decision.names ? ` (${decision.names.join(', ')})` : '';
  const said =
    decision.kind === 'approve' ? `approved${edited ? ' with edits' : ''}` : `rejected${which}: ${decision.reason}`;
  return decision.by === 'timeout' && decision.kind === 'approve' ? `${said}, since nobody answered in time` : said;
}
