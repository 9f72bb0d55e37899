/** Approvals by a person. A decision is about one subject, identified by its content (`of`): another version of it needs a decision of its own. */
import { z } from 'zod';

export const approvalRuleSchema = z
  .strictObject({
    capabilities: z.boolean().default(false).describe('The selected capabilities.'),
    environments: z.boolean().default(false).describe('Every accepted environment.'),
  })
  .prefault({});

/** sha256 of the selection or the module that the person read. */
const of = z.string().optional();

const approvalSchema = z.strictObject({ kind: z.literal('approve'), of });

const rejectionSchema = z.strictObject({
  kind: z.literal('reject'),
  of,
  /** Names of rejected capabilities; if absent, all pending ones. */
  names: z.array(z.string()).min(1, 'it is empty: name a capability, or leave it out for all').optional(),
  reason: z.string().trim().min(1, 'it is blank'),
});

export const answerSchema = z.discriminatedUnion('kind', [approvalSchema, rejectionSchema]);
export type Answer = z.infer<typeof answerSchema>;

/** Milliseconds since the epoch. */
const at = z.number();
export const decisionSchema = z.discriminatedUnion('kind', [
  approvalSchema.extend({ at }).strip(),
  rejectionSchema.extend({ at }).strip(),
]);
export type Decision = z.infer<typeof decisionSchema>;

export interface Waiting {
  what: 'capabilities' | 'environment';
  of: string;
  names: string[];
  round?: number;
  /** Milliseconds since the epoch. */
  since: number;
}

export function approvalCommands(campaign: string, { what, names }: Pick<Waiting, 'what' | 'names'>) {
  const named = what === 'environment' ? ` ${names[0]}` : '';
  return {
    approve: `campaign approve ${campaign}${named}`,
    reject: `campaign reject ${campaign}${named || ' NAME...'} --reason TEXT`,
  };
}

/** `waits for approval of 3 capabilities since 2026-11-30 12:00 UTC: campaign approve demo`. A duration would not be updated where it is shown. */
export function waitingText({ waiting, campaign }: { waiting: Waiting; campaign: string }): string {
  const { what, names, round, since } = waiting;
  const many = names.length === 1 ? '1 capability' : `${names.length} capabilities`;
  const thing = what === 'capabilities' ? many : `its environment, round ${round},`;
  const time = new Date(since).toISOString().slice(0, 16).replace('T', ' ');
  return `waits for approval of ${thing} since ${time} UTC: ${approvalCommands(campaign, waiting).approve}`;
}

/** `approved`, `rejected (tell_price): TEXT`. */
export function decisionText(decision: Decision): string {
  if (decision.kind === 'approve') return 'approved';
  return `rejected${decision.names ? ` (${decision.names.join(', ')})` : ''}: ${decision.reason}`;
}
