/**
 * analysis.json: the findings in a user's conversations (docs/conversations.md). Invariants: page and terminal are rendered from it alone; conversations
 * have the ids of the user's files, and message numbers are indexes into their messages.
 */
import type { Beginning, Label } from '../../domain/capability';
import type { Budget, Spent } from '../../domain/endpoints';
import type { Estimate } from '../../domain/statistics';
import type { ReportedMessage, ReportedSelection } from '../../report/capability-model';
import type { Conversations } from './conversations';
import type { Difference, Parting } from './counts';

/** A sentence, with the conversations that it counts. */
export interface Statement {
  text: string;
  conversations?: string[];
}

export interface Section {
  title: string;
  statements: Statement[];
}

export interface LackedCapability {
  capability: string;
  /** The label of most passes. */
  label: Label;
  /** Number of passes that label it LACKING. */
  lacking: number;
  passes: number;
  /** The message that most of these passes name (the earliest in a tie), and one pass's reason. */
  message?: number | undefined;
  says: string;
}

export interface AnalysedFailure {
  conversation: string;
  task: string;
  reward: number;
  /** Number of its messages. */
  messages: number;
  /** The capabilities that some pass calls LACKING, most votes first. */
  lacking: LackedCapability[];
  /** The message that most passes name, among the passes that blame the most-blamed party (`of`); the earliest in a tie. */
  begins?: Beginning | undefined;
  /** Causes, else a fault of another party, else NOT_EXPLAINED; empty where no pass labeled it. */
  explainedBy: string[];
}

/** A capability that was selected; without passed conversations every candidate. */
export interface Cause {
  capability: string;
  definition: string;
  /** Failed conversations that it explains. */
  explains: string[];
  /** Their share of all conversations, with a 95% interval over tasks: the most that success can rise. */
  worth: Estimate;
  /** Number of conversations in which the situation arises according to most passes; `shown` counts those that show the capability. */
  arises: number;
  shown: number;
  /** Explained failures that begin at a tool's error or the message after it. */
  atErrors: number;
}

/** The findings of a language model. */
export interface Reading {
  analyst: { kind: string; version: string; model: string };
  causes: Cause[];
  failures: AnalysedFailure[];
  /** The same structure as in a report; a field `rollout` holds the id of a conversation. */
  selection: ReportedSelection;
  budget: Budget;
  /** On everything of this name, also by earlier runs. */
  spent: Spent[];
}

/** A conversation to read, without system messages. */
export interface ShownConversation {
  conversation: string;
  task: string;
  reward: number;
  messages: ReportedMessage[];
}

export interface Analysis {
  name: string;
  madeAt: string;
  files: string[];
  conversations: Conversations['counts'];
  /** Remarks on conversations that were left out and on unknown fields. */
  notes: string[];
  /** The text of terminal and page; the first section is the answer. */
  sections: Section[];
  differences: Difference[];
  partings: Parting[];
  /** Absent without a language model. */
  reading?: Reading | undefined;
  /** Failed ones first; of many the first. */
  shown: ShownConversation[];
}
