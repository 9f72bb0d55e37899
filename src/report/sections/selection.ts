/** The sections on the selection, and what it rests on: of a campaign, and of conversations from elsewhere. */
import type { SelectionRule } from '../../domain/campaign';
import type { ReportedCandidate, ReportedSelection } from '../capability-model';
import type { Report } from '../model';
import { type Block, type Blocks, details, fold, heading, list, note, paragraph, table } from '../blocks';
import { failedPassesText } from '../verdict';
import { citationBlock, trajectoryPieces } from './evidence';

/** What the columns of the candidates mean; nothing is labeled without passes. */
const ruleText = ({ rho, delta, votes }: SelectionRule, passes: number): string =>
  passes === 0
    ? 'The analyst gives the capabilities outright; nothing was labeled.'
    : `Each of ${passes} passes labels all conversations for every candidate. Cov is the share of the failures that lack it; Delta, how much more often failures lack it than passed ones. A pass votes for a candidate if Cov ≥ ${rho} and Delta ≥ ${delta}; ${votes} votes select it. Agreement is Krippendorff’s alpha of the passes’ labels: 1 where all label alike, 0 as by chance.`;

const candidatesTable = (candidates: readonly ReportedCandidate[]): Block =>
  table(candidates, [
    ['candidate', ({ name }) => name],
    ['votes', ({ votes, passes }) => (passes === 0 ? 'given' : `${votes}/${passes}`)],
    ['Cov', ({ coverage }) => coverage, { spare: 6 }],
    ['Delta', ({ delta }) => delta, { spare: 5 }],
    candidates.some(({ agreement }) => agreement !== undefined) && ['agreement', ({ agreement }) => agreement],
    ['selected', ({ selected }) => (selected ? 'yes' : 'no')],
    ['definition', ({ definition }) => definition, { detail: true }],
  ]);

export function selectionBlocks({ selection }: Pick<Report, 'selection'>): Blocks {
  if (selection === undefined) return [];
  const { candidates, rule, passes, reason, decision, failed, passed } = selection;
  return [
    heading('Selection'),
    ...details(paragraph(['Labeled conversations: failed', failed, 'passed', passed])),
    note([ruleText(rule, passes), { lineage: selection.from }]),
    paragraph(failedPassesText(selection), 'bad'),
    paragraph(reason, 'bad'),
    decision !== undefined && paragraph(`The selected ones were ${decision}.`),
    candidatesTable(candidates),
    ...details(heading('What was seen', 3), ...evidenceBlocks(selection)),
    ...details(heading('Faults of the environment or the user'), ...faultBlocks(selection)),
  ];
}

const plural = (n: number, one: string, many: string) => (n > 0 ? [`${n} ${n === 1 ? one : many}`] : []);

/** The selected ones open, the others closed. */
function evidenceBlocks({ evidence = [], candidates }: ReportedSelection): Block[] {
  if (evidence.length === 0) return [];
  const selected = new Set(candidates.flatMap((candidate) => (candidate.selected ? [candidate.name] : [])));
  return [
    note(
      'Steps that the analyst cites, and for the selected capabilities failed trajectories that passes label LACKING. Each opens to the message and its neighbours; the code says of which conversation: a rollout’s key, for `campaign lineage`, or its name in the files.',
    ),
    ...evidence.map(({ capability, citations, lacking = [] }) => {
      const counts = [
        ...plural(citations.length, 'cited step', 'cited steps'),
        ...plural(lacking.length, 'LACKING trajectory', 'LACKING trajectories'),
      ].join(', ');
      const lackingBlocks = lacking.map((one) => {
        const cited = one.message === undefined ? '' : `, ${one.citing} cite the message`;
        return citationBlock(one, { also: `LACKING in ${one.lacking} of ${one.passes} passes${cited}` });
      });
      return fold(
        [
          { tone: 'strong', text: capability },
          { tone: 'quiet', text: counts },
        ],
        [...citations.map((one) => citationBlock(one)), ...lackingBlocks],
        { open: selected.has(capability) },
      );
    }),
  ];
}

const whose = { environment: 'Environment', user: 'User' } as const;

function faultBlocks({ faults }: ReportedSelection): Block[] {
  if (!faults) return [];
  const { found, trajectories } = faults;
  const { environment, user, examples = [] } = trajectories ?? {};
  return [
    note(
      'What an agent can’t mend: it never becomes a capability. A failed trajectory counts here if the passes put it down to one of the two more often than to the agent; it is NA for every capability in the passes that do.',
    ),
    ...(trajectories
      ? [paragraph(['Failed trajectories put down to the environment', environment, 'to the user', user])]
      : []),
    list(
      examples.map((one) => [
        ...trajectoryPieces(one, `${whose[one.of].toLowerCase()} in ${one.votes} of ${one.passes} passes:`),
        one.reason,
      ]),
    ),
    ...found.map(({ of, what, citations }) =>
      fold(
        [{ tone: 'strong', text: whose[of] }, what],
        citations.map((one) => citationBlock(one)),
        { open: true },
      ),
    ),
  ];
}
