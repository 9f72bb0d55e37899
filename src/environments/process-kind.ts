/** Any program that speaks the environment protocol; the benchmarks' bridges are opened in the same way. */
import { z } from 'zod';
import { chatModelSchema, type ChatModel } from '../domain/chat-model';
import type { Environment } from '../domain/environment';
import type { EnvironmentSpec } from '../domain/environment-spec';
import { defineKind } from '../domain/kind';
import { openPartners } from '../partners/open';
import type { ProcessCommand } from './connection';
import type { EnvironmentContext, EnvironmentKind } from './kinds';
import { openProcessEnvironment } from './process';

/** Processes side by side; episodes are spread over them. */
export const processes = z.number().int().positive().default(1);
/** Models that play other parties of an episode: not the policy, and never trained. */
export const partnerModels = {
  /** Plays the user, where the environment does not do so itself. */
  user: chatModelSchema.optional(),
  /** Answers the questions that an environment's evaluation asks. */
  judge: chatModelSchema.optional(),
};

interface ProcessOptions {
  processes: number;
  user?: ChatModel | undefined;
  judge?: ChatModel | undefined;
}

/** `partners` of the context go before the models that the options name. */
export const openProgram = (
  program: ProcessCommand,
  { processes, user, judge }: ProcessOptions,
  { partners }: EnvironmentContext,
): Environment => openProcessEnvironment({ ...program, processes, ...(partners ?? openPartners({ user, judge })) });

const commandLine = ({ command }: EnvironmentSpec): string => (command as string[]).join(' ');

export const processKind: EnvironmentKind = {
  ...defineKind({
    kind: 'process',
    version: '1',
    options: {
      /** A program that speaks the environment protocol on stdio. */
      command: z.array(z.string()).min(1),
      /** Working directory. */
      cwd: z.string().default('.'),
      processes,
      ...partnerModels,
    },
    paths: ['cwd'],
    open: ({ command, cwd, ...options }, _identity, context: EnvironmentContext) =>
      openProgram({ command, cwd }, options, context),
  }),
  label: commandLine,
  remedy: (spec) => `run it by hand, then \`campaign env check -- ${commandLine(spec)}\``,
};
