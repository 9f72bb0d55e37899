/**
 * What a language model found and wrote, with the steps of trajectories that it rests on, in report.json. Invariants: a text is quoted as it
 * stands in the artifact, or says how much of it is left out; a trajectory that is not among the labeled ones is named and nothing is made up
 * for it.
 */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { figureSchema } from './figure';

const count = z.number().int().nonnegative();

const reportedMessageSchema = z.strictObject({
  /** Its index in the trajectory. */
  message: count,
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  /** What was said, then the calls. */
  text: z.string(),
  /** Characters that are left out at its end. */
  missing: count.optional(),
});
export type ReportedMessage = z.infer<typeof reportedMessageSchema>;

/** Which trajectory it is. */
const trajectoryFields = {
  /** The rollout's key. */
  rollout: z.string(),
  task: z.string().optional(),
  attempt: count.optional(),
  outcome: z.enum(['failed', 'passed']).optional(),
};

/** A step of a trajectory, as evidence. */
export const reportedCitationSchema = z.strictObject({
  ...trajectoryFields,
  /** Index of the message; absent where the whole trajectory is meant. */
  message: count.optional(),
  /** What is to be seen there. */
  says: z.string(),
  /** The message and its neighbours. */
  context: z.array(reportedMessageSchema),
});
export type ReportedCitation = z.infer<typeof reportedCitationSchema>;

/** A failed trajectory that passes label LACKING: the message that most of them cite, and what one of them says of it. */
export const reportedLackingSchema = z.strictObject({
  ...reportedCitationSchema.shape,
  /** Passes that label it LACKING, of those that look at it. */
  lacking: count,
  passes: count,
  /** Passes that cite the message. */
  citing: count,
});
export type ReportedLacking = z.infer<typeof reportedLackingSchema>;

/** Of one candidate, where the analyst cites or gives reasons. */
export const reportedEvidenceSchema = z.strictObject({
  capability: z.string(),
  citations: z.array(reportedCitationSchema),
  /** Of a selected one; absent where no pass gives reasons. */
  lacking: z.array(reportedLackingSchema).optional(),
});
export type ReportedEvidence = z.infer<typeof reportedEvidenceSchema>;

/** What failed for no fault of the agent's. */
export const reportedFaultsSchema = z.strictObject({
  /** What discovery found. */
  found: z.array(
    z.strictObject({
      of: z.enum(['environment', 'user']),
      what: z.string(),
      citations: z.array(reportedCitationSchema),
    }),
  ),
  /** Failed trajectories that most of the passes put down to it: they are NA everywhere. Absent where no pass was made. */
  trajectories: z
    .strictObject({
      environment: figureSchema,
      user: figureSchema,
      /** The first of them, each with the reason of one pass. */
      examples: z.array(
        z.strictObject({
          ...trajectoryFields,
          of: z.enum(['environment', 'user']),
          reason: z.string(),
          votes: count,
          passes: count,
        }),
      ),
    })
    .optional(),
});
export type ReportedFaults = z.infer<typeof reportedFaultsSchema>;

/** One version of a synthesized environment: what was written, and what changed. */
export const reportedVersionSchema = z.strictObject({
  module: artifactRefSchema,
  lines: count,
  /** Why training there should transfer, as its writer says it. */
  rationale: z.string().optional(),
  /** To the version of the round before. */
  changes: z
    .strictObject({
      added: count,
      removed: count,
      /** As of `diff -u`; at most so many lines. */
      lines: z.array(z.string()),
      /** Lines that are left out. */
      missing: count.optional(),
    })
    .optional(),
});
export type ReportedVersion = z.infer<typeof reportedVersionSchema>;

/** An episode of the base model, as an example. */
export const reportedEpisodeSchema = z.strictObject({
  /** The rollout's key. */
  rollout: z.string(),
  task: z.string(),
  outcome: z.enum(['failed', 'passed']),
  reward: z.number(),
  stopReason: z.string(),
  /** The agent was shown the environment's hint, which is not among the messages. */
  hinted: z.literal(true).optional(),
  messages: z.array(reportedMessageSchema),
  /** Messages that are left out at its end. */
  missing: count.optional(),
});
export type ReportedEpisode = z.infer<typeof reportedEpisodeSchema>;
