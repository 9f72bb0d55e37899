/** Steps of trajectories on the page: what is cited, with the messages around it, and the command that leads to the rollout. */
import type { ReportedCitation, ReportedMessage } from './capability-model';
import { lineageCommand, shortSha } from './format';
import { longText } from './long-text';
import { markup, type Markup } from './markup';

export const roles = { system: 'system', user: 'user', assistant: 'agent', tool: 'result' } as const;

export const messagesView = (messages: readonly ReportedMessage[], cited?: number): Markup =>
  markup`<div class="conversation">${messages.map(
    ({ message, role, text, missing }) =>
      markup`<div class="who">${message} ${roles[role]}</div><div${message === cited && markup` class="cited"`}>${longText(text, { missing })}</div>`,
  )}</div>`;

/** `3ab0c1d2 task 12, attempt 0, failed`. */
export const trajectoryView = (
  { rollout, task, attempt, outcome }: Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'>,
  campaign: string,
): Markup => {
  const key = markup`<code title="${lineageCommand({ start: rollout, campaign })}">${shortSha(rollout)}</code>`;
  if (task === undefined) return markup`${key} <span class="bad">not among the labeled rollouts</span>`;
  return markup`${key} task ${task}, attempt ${attempt ?? 0}, <span${outcome === 'failed' && markup` class="bad"`}>${outcome}</span>`;
};

/** One line that opens to the messages; `also` is said of it behind the trajectory. */
export const citationView = (
  citation: ReportedCitation,
  { campaign, also }: { campaign: string; also?: string },
): Markup => {
  const { message, says, context } = citation;
  const head = markup`${trajectoryView(citation, campaign)}${message !== undefined && `, message ${message}`}${also !== undefined && `, ${also}`}: ${longText(says)}`;
  if (context.length === 0) return markup`<div class="citation">${head}</div>`;
  return markup`<details class="citation"><summary>${head}</summary>${messagesView(context, message)}</details>`;
};
