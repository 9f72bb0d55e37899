/** What an analyst shows for its findings on the page: cited steps, reasons of labels, faults. Absent parts give nothing. */
import type { Report } from './model';
import type { ReportedEvidence, ReportedFaults, ReportedSelection } from './capability-model';
import { citationView, trajectoryView } from './conversation';
import { figureView } from './figure-view';
import { longText } from './long-text';
import { markup, type Markup } from './markup';

/** The selected ones open, the others closed. */
export const evidenceView = (
  { evidence = [], candidates }: ReportedSelection,
  campaign: string,
): Markup | undefined => {
  if (evidence.length === 0) return undefined;
  const selected = new Set(candidates.flatMap((candidate) => (candidate.selected ? [candidate.name] : [])));
  return markup`<h3>What was seen</h3>
<p class="small quiet">Steps that the analyst cites, and for the selected capabilities failed trajectories that passes label LACKING. Each
opens to the message and its neighbours; the code is the rollout’s key, for <code>campaign lineage</code>.</p>
${evidence.map(
  (of) =>
    markup`<details class="seen"${selected.has(of.capability) && markup` open`}><summary><b>${of.capability}</b> <span class="quiet">${counted(of)}</span></summary>${seen(of, campaign)}</details>`,
)}`;
};

const counted = ({ citations, lacking = [] }: ReportedEvidence): string =>
  [
    ...(citations.length > 0 ? [`${citations.length} cited step${citations.length === 1 ? '' : 's'}`] : []),
    ...(lacking.length > 0 ? [`${lacking.length} LACKING trajector${lacking.length === 1 ? 'y' : 'ies'}`] : []),
  ].join(', ');

const seen = ({ citations, lacking = [] }: ReportedEvidence, campaign: string): Markup =>
  markup`${citations.map((citation) => citationView(citation, { campaign }))}${
    lacking.length > 0 &&
    markup`<div class="small quiet">Labeled LACKING</div>${lacking.map((one) => {
      const cited = one.message === undefined ? '' : `, ${one.citing} cite the message`;
      return citationView(one, { campaign, also: `LACKING in ${one.lacking} of ${one.passes} passes${cited}` });
    })}`
  }`;

const whose = { environment: 'Environment', user: 'Simulated user' } as const;

/** What failed for no fault of the agent's. */
export const faultsSection = ({ selection, campaign }: Report): Markup | undefined => {
  const faults = selection?.faults;
  if (faults === undefined) return undefined;
  return markup`<h2>Faults of the environment or the simulated user</h2>
<p class="small quiet">What an agent can’t mend: it never becomes a capability. A failed trajectory counts here if the passes put it
down to one of the two more often than to the agent; it is NA for every capability in the passes that do.</p>
${faults.trajectories !== undefined && counts(faults.trajectories, campaign.name)}
${faults.found.map(
  ({ of, what, citations }) =>
    markup`<h3>${whose[of]}</h3><div>${longText(what)}</div>${citations.map((citation) => citationView(citation, { campaign: campaign.name }))}`,
)}`;
};

const counts = (
  { environment, user, examples }: NonNullable<ReportedFaults['trajectories']>,
  campaign: string,
): Markup =>
  markup`<div>Failed trajectories put down to the environment ${figureView({ figure: environment, campaign })} to the simulated user ${figureView({ figure: user, campaign })}</div>${examples.map(
    (one) =>
      markup`<div class="citation">${trajectoryView(one, campaign)}, ${whose[one.of].toLowerCase()} in ${one.votes} of ${one.passes} passes: ${longText(one.reason)}</div>`,
  )}`;
