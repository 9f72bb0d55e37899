/** From an environment's spec in a campaign to the environment, and what it shows a policy before the first answer. */
import type { Environment } from '../domain/environment';
import { type EnvironmentSpec, kindOf } from '../domain/kinds';
import { agentView } from '../domain/messages';
import type { EnvironmentContext, EnvironmentKind } from './kinds';

export async function openEnvironment(
  spec: EnvironmentSpec,
  { kinds, ...context }: EnvironmentContext & { kinds: readonly EnvironmentKind[] },
): Promise<Environment> {
  return kindOf(kinds, spec).open(spec, context);
}

export function describeSpec(spec: EnvironmentSpec, kinds: readonly EnvironmentKind[]) {
  const { kind, program, label } = kindOf(kinds, spec);
  const { silenceSeconds, user, judge } = program?.(spec) ?? {};
  return {
    label: label?.(spec) ?? kind,
    /** Without an answer, after which its process counts as hung; undefined for one that has none. */
    silenceSeconds,
    user,
    judge,
  };
}

/** Tasks that are begun for it: each may cost a word of a simulated user's. */
const BEGUN = 4;

interface Openings {
  texts: string[];
  tools: string[];
}

/** Of the first few of `tasks`; the written policy of the description stands for them where there is none. */
export async function openingsOf({
  environment,
  tasks,
  seed,
  signal,
}: {
  environment: Environment;
  tasks: readonly string[];
  seed: number;
  signal?: AbortSignal;
}): Promise<Openings> {
  const { policy, tools } = await environment.describe();
  const starts = await Promise.all(
    tasks.slice(0, BEGUN).map(async (id) => {
      const episode = await environment.reset({ id, seed }, signal);
      await episode.close();
      return episode.start;
    }),
  );
  const said = starts.flatMap(({ messages }) => agentView(messages).map(({ content }) => content));
  return {
    texts: [...new Set([policy, ...said])],
    tools: [...new Set([...tools, ...starts.flatMap((start) => start.tools)].map(({ name }) => name))],
  };
}
