/** Any program that speaks the environment protocol; the benchmarks' bridges are opened in the same way. */
import { z } from 'zod';
import { type ChatModel, chatModelSchema, silenceField } from '../domain/endpoints';
import type { Environment } from '../domain/environment';
import { defineKind, type EnvironmentSpec } from '../domain/kinds';
import { openPartners } from '../partners/open';
import { SILENCE_SECONDS, type ProcessCommand } from './connection';
import type { EnvironmentContext, EnvironmentKind } from './kinds';
import { openProcessEnvironment } from './process';

/** How the processes of an environment are run. */
export const processLimits = {
  /** Side by side; episodes are spread over them. */
  processes: z.number().int().positive().default(1),
  /** Without any answer while requests are open, after which a process counts as hung. */
  silenceSeconds: silenceField.default(SILENCE_SECONDS),
};
/** Models that play other parties of an episode: not the policy, and never trained. */
export const partnerModels = {
  /** Plays the user, where the environment does not do so itself. */
  user: chatModelSchema.optional(),
  /** Answers the questions that an environment's evaluation asks. */
  judge: chatModelSchema.optional(),
};

interface ProcessOptions {
  processes: number;
  silenceSeconds: number;
  user?: ChatModel | undefined;
  judge?: ChatModel | undefined;
}

/** `partners` and `silenceMs` of the context go before what the options say. */
export const openProgram = (
  program: ProcessCommand,
  { processes, silenceSeconds, user, judge }: ProcessOptions,
  { partners, silenceMs = silenceSeconds * 1000 }: EnvironmentContext,
): Environment =>
  openProcessEnvironment({
    ...program,
    processes,
    silenceMs,
    ...(partners ?? openPartners({ user, judge })),
  });

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
      ...processLimits,
      ...partnerModels,
    },
    paths: ['cwd'],
    open: ({ command, cwd, ...options }, _identity, context: EnvironmentContext) =>
      openProgram({ command, cwd }, options, context),
  }),
  label: commandLine,
  remedy: (spec) => `run it by hand, then \`campaign env check -- ${commandLine(spec)}\``,
};
