/**
 * The other parties to an episode that are played by a model: the simulated user and the judge. Invariant: what they fail at is an
 * OutsideFailure, so the rollout is broken and never scored.
 */
import type { ModelUsage } from '../domain/endpoints';
import type { Message, ToolSchema, UserMessage } from '../domain/messages';

export interface Outside {
  signal?: AbortSignal;
  /** Called once where the request is paid for, whatever comes of it. */
  onUsage?: (usage: ModelUsage) => void;
}

export interface UserTurn extends Outside {
  /** The whole conversation from where the user stands: `user` are the agent's words, `assistant` its own. */
  messages: Message[];
  tools: ToolSchema[];
  /** Of this turn; equal turns get equal seeds. */
  seed: number;
}

export interface SimulatedUser {
  /** Everything that determines its answers (model, sampling): part of the environment's version, and so of every rollout's key. */
  id: string;
  /** The user's next message: words or calls of its own tools, never nothing. */
  speak(turn: UserTurn): Promise<UserMessage>;
}

export interface Judge {
  id: string;
  /** The answer, in words. */
  answer(question: Message[], outside?: Outside): Promise<string>;
}

export interface Partners {
  user?: SimulatedUser;
  judge?: Judge;
}
