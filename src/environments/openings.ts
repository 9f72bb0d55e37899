/** What a target shows a policy before its first answer. Invariant: each text once, so that the system message counts as one. */
import type { Environment } from '../domain/environment';
import { agentView } from '../domain/messages';

/** Tasks that are begun for it: each may cost a word of a simulated user's. */
const BEGUN = 4;

export interface Openings {
  texts: string[];
  /** Names of all tools that are offered. */
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
