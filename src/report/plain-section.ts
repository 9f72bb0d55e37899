/** Plain requests on the page: whether the policies keep what the base model could do. Absent where the campaign has none. */
import { PLAIN_LIMITS } from '../domain/plain';
import type { Report } from '../domain/report';
import { figureView } from './figure-view';
import { markup, type Markup } from './markup';
import { table } from './sections';

const { tokens, distinct, baseLogprob } = PLAIN_LIMITS;

export const plainSection = ({ plain, campaign }: Report): Markup | undefined => {
  if (plain === undefined) return undefined;
  const view = (figure: Parameters<typeof figureView>[0]['figure']) => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Plain requests</h2>
<p class="small">Requests that ask for no format, answered by every policy as on test. A policy has collapsed if its answers are, in the mean, shorter than
${tokens.least} or longer than ${tokens.most} times the base model's, if ${100 * distinct} points fewer of their runs of three words are different ones, or if
the base model finds their tokens less likely than its own by ${baseLogprob} nat.</p>
${table({
  head: ['policy', 'tokens', 'different runs of words', "the base model's log-prob a token", 'to its own', 'kept'],
  rows: plain.policies.map((one) => [
    one.name,
    view(one.tokens),
    view(one.distinct),
    view(one.baseLogprob),
    view(one.toBase),
    keptText(one.collapsed),
  ]),
})}${plain.failed?.map(({ name, reason }) => markup`<p class="bad">${name}: ${reason}</p>`)}`;
};

const keptText = (collapsed: readonly string[] | undefined): Markup | string => {
  if (collapsed === undefined) return '';
  return collapsed.length === 0 ? 'yes' : markup`<span class="bad">no: ${collapsed.join('; ')}</span>`;
};
