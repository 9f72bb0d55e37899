/**
 * Synthesized environments: one stored module, or several as one (a mixture), each task of which is played in its own
 * module with that one's policy and tools.
 */
import { z } from 'zod';
import { digest } from '../store/hash';
import { type ArtifactRef, artifactRefSchema } from '../domain/artifacts';
import type { Environment, EnvironmentDescription } from '../domain/environment';
import { defineKind, MIXTURE, SANDBOX } from '../domain/kinds';
import { openSandboxEnvironment } from '../sandbox/module';
import { LISTED, mixedTaskOf, mixedTasks } from '../domain/seeds';
import type { EnvironmentContext, EnvironmentKind } from './kinds';

export const sandbox: EnvironmentKind = {
  ...defineKind({
    kind: SANDBOX,
    version: '1',
    options: { module: artifactRefSchema },
    open: ({ module }, _identity, { store }: EnvironmentContext) => openSandboxEnvironment({ module, store }),
  }),
  internal: true,
};

export const mixture: EnvironmentKind = {
  ...defineKind({
    kind: MIXTURE,
    version: '1',
    options: { modules: z.array(artifactRefSchema).min(1) },
    open: ({ modules }, _identity, context: EnvironmentContext) => openMixture(modules, context),
  }),
  internal: true,
};

async function openMixture(modules: readonly ArtifactRef[], { store }: EnvironmentContext): Promise<Environment> {
  const opened = await Promise.allSettled(modules.map((module) => openSandboxEnvironment({ module, store })));
  const parts = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed) {
    await Promise.all(parts.map((part) => part.close()));
    throw failed.reason;
  }
  const described = together(await Promise.all(parts.map((part) => part.describe())));
  const version = digest(modules.map(({ sha256 }) => sha256));
  return {
    appearance: { task: 'fixed' },
    describe: async () => ({ ...described, name: `mixture-${version.slice(0, 12)}`, version }),
    tasks: async (split) => {
      const { from, count } = LISTED[split];
      return mixedTasks({ of: parts.map(() => ({ from })), count }).map((id) => ({ id, split }));
    },
    async reset({ id: task, seed }, signal) {
      const { environment, id } = mixedTaskOf(task, parts.length);
      return parts[environment]!.reset({ id, seed }, signal);
    },
    close: async () => void (await Promise.all(parts.map((part) => part.close()))),
  };
}

/** Joins descriptions: every text and tool once. Tools of equal names are represented by the first; an episode offers its own. */
function together(all: readonly EnvironmentDescription[]): Omit<EnvironmentDescription, 'name' | 'version'> {
  const offered = all.flatMap(({ tools }) => tools);
  return {
    policy: [...new Set(all.map(({ policy }) => policy))].join('\n\n'),
    tools: offered.filter(({ name }, n) => offered.findIndex((tool) => tool.name === name) === n),
    maxSteps: Math.max(...all.map(({ maxSteps }) => maxSteps)),
    hasReference: all.every(({ hasReference }) => hasReference),
  };
}
