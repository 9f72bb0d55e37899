/** A conversation that somebody has already, with how it ended. Invariant: `messages` stand as in the file, so that an index into them is one into the file's. */
import type { Reference, ToolSchema } from '../domain/environment';
import type { Message } from '../domain/messages';

export interface Conversation {
  id: string;
  /** Attempts at one task share it. */
  task: string;
  messages: Message[];
  /** 0 to 1; 1 is success. */
  reward: number;
  reference?: Reference;
  /** Tools that the agent was offered, where the file tells. */
  tools?: ToolSchema[];
}

/** What one file holds. Where `problems` are, the file is not used. */
export interface FileContents {
  conversations: Conversation[];
  /** Each names file, line, field, value and fix. */
  problems: string[];
  /** What was left out or taken otherwise than it stands there, in sentences. */
  notes: string[];
}

/** Counts what is to be told once for a file, in the order in which it was first seen. */
export class Tally {
  private readonly counts = new Map<string, number>();

  add(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  map<T>(tell: (what: string, count: number) => T): T[] {
    return [...this.counts].map(([what, count]) => tell(what, count));
  }

  /** Nothing where nothing was counted. */
  line(tell: (list: string) => string): string[] {
    const list = this.map((what, count) => `${what} (${count})`);
    return list.length === 0 ? [] : [tell(list.join(', '))];
  }
}
