/** The tasks of an agent: a file of JSON lines, each with an id and a split. Further fields are for the program. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { digest, sha256 } from '../../store/hash';
import { type Task, taskSchema } from '../../domain/environment';
import { badInput, reasonOf } from '../../domain/failures';
import { firstIssue } from '../../domain/issues';
import { jsonText } from '../../domain/messages';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../../domain/plain-text';

const lineSchema = jsonText.pipe(
  z.looseObject(taskSchema.shape).superRefine((task, context) => {
    const path = findHalfCharacter(task);
    if (path) context.addIssue({ code: 'custom', path, message: HALF_CHARACTER_PROBLEM });
  }),
);
export type AgentTask = Task & Record<string, unknown>;

export interface TaskList {
  /** Keyed by id. */
  tasks: ReadonlyMap<string, AgentTask>;
  /** Changes when a task changes. */
  version: string;
}

/** Throws BadInput, which names the line. */
export async function readTasks(file: string): Promise<TaskList> {
  const bad = (problem: string) => badInput(`target.tasks: ${file}${problem}`);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw bad(` can't be read (${reasonOf(error)}); name a file of JSON lines`);
  });
  const tasks = new Map<string, AgentTask>();
  for (const [n, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const { data, error } = lineSchema.safeParse(line);
    if (!data)
      throw bad(
        `, line ${n + 1}: ${firstIssue(error, jsonText.safeParse(line).data ?? line)}; a line is such as {"id": "a", "split": "train", "prompt": "..."}`,
      );
    if (tasks.has(data.id)) throw bad(`, line ${n + 1}: id ${data.id} is there twice; give each task an id of its own`);
    tasks.set(data.id, data);
  }
  if (![...tasks.values()].some(({ split }) => split === 'train'))
    throw bad(' has no task with split "train"; give some of its lines that split');
  return { tasks, version: sha256(text) };
}

/** Lists tasks that come from no file. */
export const listOf = (tasks: AgentTask[]): TaskList => ({
  tasks: new Map(tasks.map((task) => [task.id, task])),
  version: digest(tasks),
});
