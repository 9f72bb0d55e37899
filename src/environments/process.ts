/**
 * Any program that speaks the environment protocol, behind the Environment interface, and the kinds of such programs.
 * An episode lives and dies with the run of the process that it began in; the next reset starts the process again.
 */
import { z } from 'zod';
import { checkCommand, checkVariable, chatModelSchema, silenceField, variableName } from '../domain/endpoints';
import type { Environment, EnvironmentDescription, Episode } from '../domain/environment';
import { defineKind, type KindSpec } from '../domain/kinds';
import { openPartners, type Partners } from '../partners/partners';
import { connect, type Connection, type ProcessCommand, SILENCE_SECONDS } from './connection';
import type { EnvironmentContext, EnvironmentKind } from './kinds';
import { beginEpisode } from './process-episode';

/** How the processes of an environment are run, and models that play other parties of an episode: not the policy, and never trained. */
export const processOptions = {
  processes: z.number().int().positive().default(1).describe('Processes side by side; episodes are spread over them.'),
  silenceSeconds: silenceField
    .default(SILENCE_SECONDS)
    .describe('Seconds without an answer; then it is started again.'),
  passEnv: z.array(variableName).optional().describe('Variables that it is given beside PATH, HOME and the like.'),
  user: chatModelSchema.optional().describe('Model that plays the user, where the environment wants one.'),
  judge: chatModelSchema.optional().describe('Model that answers the questions of the evaluation.'),
};
const processSchema = z.object(processOptions);
export type ProcessOptions = z.infer<typeof processSchema>;

/** A kind of environments that run as a program; its options are its own and those of `processOptions`. */
export function programKind<Shape extends z.ZodRawShape>(o: {
  kind: string;
  options: Shape;
  paths: readonly (keyof Shape & string)[];
  program(options: z.infer<z.ZodObject<Shape>>): ProcessCommand;
}) {
  const { kind, options, paths, program } = o;
  const definition = defineKind({
    kind,
    version: '1',
    options,
    paths,
    open: (read, _identity, { partners, silenceMs }: EnvironmentContext) => {
      const { processes, silenceSeconds, passEnv, ...models } = processSchema.parse(read);
      const command = program(read);
      checkCommand(command.command);
      for (const name of passEnv ?? []) checkVariable('target.passEnv', name);
      return openProcessEnvironment({
        ...command,
        passEnv,
        processes,
        silenceMs: silenceMs ?? silenceSeconds * 1000,
        ...(partners ?? openPartners(models)),
      });
    },
  });
  return { ...definition, program: (spec: KindSpec): ProcessOptions => processSchema.parse(spec) };
}

const kind = programKind({
  kind: 'process',
  options: {
    command: z.array(z.string()).min(1).describe('Program and arguments; it speaks the environment protocol.'),
    cwd: z.string().default('.').describe('Its working directory; counts from this file.'),
    ...processOptions,
  },
  paths: ['cwd'],
  program: ({ command, cwd }) => ({ command, cwd }),
});

const commandLine = (spec: KindSpec): string => kind.read(spec).command.join(' ');

export const processKind: EnvironmentKind = {
  ...kind,
  label: commandLine,
  remedy: (spec) => `run it by hand, then \`campaign env check -- ${commandLine(spec)}\``,
};

export interface ProcessEnvironmentOptions extends ProcessCommand, Partners {
  /** Processes side by side; an episode is given to the one with the fewest. */
  processes?: number;
}

interface Slot {
  connection?: Connection;
  episodes: number;
}

/** Starts each process on its first request. Any number of episodes may be open at once. */
export function openProcessEnvironment({
  user,
  judge,
  processes = 1,
  ...command
}: ProcessEnvironmentOptions): Environment {
  const slots = Array.from({ length: processes }, (): Slot => ({ episodes: 0 }));
  const freest = (): Slot => slots.reduce((least, slot) => (slot.episodes < least.episodes ? slot : least));

  function connectionOf(slot: Slot): Connection {
    if (!slot.connection || slot.connection.failure) slot.connection = connect(command);
    return slot.connection;
  }

  return {
    async describe(): Promise<EnvironmentDescription> {
      const description = await connectionOf(freest()).request('describe', {});
      const version = [description.version, user && `user ${user.id}`, judge && `judge ${judge.id}`].filter(Boolean);
      return { ...description, version: version.join('; ') };
    },
    tasks: async (split) => (await connectionOf(freest()).request('tasks', { split })).tasks,
    async reset(task, signal, onUsage): Promise<Episode> {
      const slot = freest();
      slot.episodes++;
      const onClose = () => void slot.episodes--;
      try {
        const connection = connectionOf(slot);
        return await beginEpisode({ connection, task, user, judge, signal, onUsage, onClose });
      } catch (error) {
        onClose();
        throw error;
      }
    },
    async close() {
      await Promise.all(slots.map(({ connection }) => connection?.close()));
      for (const slot of slots) delete slot.connection;
    },
  };
}
