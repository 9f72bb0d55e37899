/**
 * A recorded user of tau2-bench's mock domain: what it says depends on its instructions and on how often it has spoken, so equal
 * conversations go on equally, whatever else is asked at the same time.
 */
import type { Play } from './chat-server';
import { say } from './chat-server';

/** By a word of the instructions, in order of preference. */
const requests: [RegExp, string][] = [
  [/important meeting/i, "Create a task called 'Important Meeting' for user_1, please."],
  [/task_2/, 'Mark task_2 as completed, please.'],
  [/task_1/, 'Mark task_1 as completed, please.'],
  [/delet/i, 'Delete task_1, please.'],
];

/** Asks, asks again, ends the conversation. */
export const recordedUser: Play = ({ messages }) => {
  const spoken = messages.filter(({ role }) => role === 'assistant').length;
  const [instructions] = messages;
  const request =
    requests.find(([words]) => words.test(instructions?.content ?? ''))?.[1] ?? 'I need help with a task.';
  return say([request, `${request} Is it done?`][spoken] ?? 'Thank you. ###STOP###');
};
