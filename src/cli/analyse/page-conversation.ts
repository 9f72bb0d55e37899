/** Cited steps on the page, with the messages around them. */
import { markup, type Markup } from '../../report/markup';
import { visible } from '../../report/visible';
import type { Cited, Quoted } from './result';

/** Text from elsewhere: what could act is spelled out; `markup` escapes it. */
export const shown = visible;

const speakers = { system: 'system', user: 'user', assistant: 'agent', tool: 'tool' } as const;

/** Messages, the cited one marked. */
export const quoted = ({ context, message: cited }: { context: readonly Quoted[]; message: number }): Markup =>
  markup`${context.map(
    ({ message, role, text, missing }) =>
      markup`<div class="turn${message === cited && ' cited'}"><b>${String(message)} ${speakers[role]}</b>${shown(text)}${
        missing !== undefined && markup` <span class="quiet">(${missing} more characters)</span>`
      }</div>`,
  )}`;

export const citedView = ({ conversation, outcome, message, says, context }: Cited): Markup =>
  markup`<details class="block"><summary class="says">${shown(conversation)} (${outcome}), message ${String(message)}: ${shown(says)}</summary>${quoted({ context, message })}</details>`;
