/** The sections on the selection, its evidence, the capabilities and the versions of their environments. */
import { partNames } from '../../domain/capability';
import { calibrationsOf, hintsText } from '../adapters';
import type {
  CalibrationFigures,
  ReportedCandidate,
  ReportedCapability,
  ReportedEvidence,
  ReportedRound,
  ReportedSelection,
} from '../capability-model';
import { MISSING } from '../format';
import type { Report } from '../model';
import { citationBlock, diffBlocks, episodeBlock, trajectoryPieces } from '../quoted';
import { type Block, type Column, fold, type Line, note, paragraph, type Piece, type Section, table } from '../section';
import { failedPassesText } from '../verdict';

const AGREEMENT =
  'Agreement of the passes on the labels: Krippendorff’s alpha over the trajectories, 1 where all passes label alike, 0 as by chance.';

export function selectionSections({ selection }: Report): Section[] {
  if (selection === undefined) return [];
  const { candidates, rule, passes, reason, decision, noComposite, evidence = [], faults, failed, passed } = selection;
  const agreed = candidates.some(({ agreement }) => agreement !== undefined);
  const how =
    passes === 0
      ? 'The analyst gives the capabilities outright; nothing was labeled.'
      : `Each of ${passes} passes labels them. A pass votes for a capability if Cov ≥ ${rule.rho} and Delta ≥ ${rule.delta}; ${rule.votes} votes select it.`;
  const columns: (string | Column)[] = [
    ...['candidate', 'votes', 'Cov', 'Delta', ...(agreed ? ['agreement'] : []), 'selected'],
    { head: 'definition', on: 'page' },
  ];
  const failedPasses = failedPassesText(selection);
  return [
    {
      title: 'Selection',
      blocks: [
        { ...paragraph(['Base rollouts: failed', failed, 'successful', passed]), on: 'page' },
        note([how, { lineage: selection.from }]),
        failedPasses !== undefined && paragraph(failedPasses, 'bad'),
        reason !== undefined && paragraph(reason, 'bad'),
        decision !== undefined && paragraph(`The selected ones were ${decision}.`),
        noComposite !== undefined && paragraph(`No composite: ${noComposite}.`),
        table(
          columns,
          candidates.map((one) => [
            one.name,
            votesText(one),
            one.coverage,
            one.delta,
            ...(agreed ? [one.agreement ?? MISSING] : []),
            one.selected ? 'yes' : 'no',
            one.definition,
          ]),
        ),
        agreed && note(AGREEMENT),
      ],
    },
    { title: 'What was seen', level: 3, on: 'page', blocks: evidenceBlocks(evidence, candidates) },
    { title: 'Faults of the environment or the simulated user', on: 'page', blocks: faults ? faultBlocks(faults) : [] },
  ];
}

/** Votes out of all passes; what the analyst selects outright has none. */
const votesText = ({ votes, passes }: ReportedCandidate): string => (passes === 0 ? 'given' : `${votes}/${passes}`);

const plural = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** The selected ones open, the others closed. */
function evidenceBlocks(evidence: readonly ReportedEvidence[], candidates: ReportedSelection['candidates']): Block[] {
  if (evidence.length === 0) return [];
  const selected = new Set(candidates.flatMap((candidate) => (candidate.selected ? [candidate.name] : [])));
  return [
    note(
      'Steps that the analyst cites, and for the selected capabilities failed trajectories that passes label LACKING. Each opens to the message and its neighbours; the code is the rollout’s key, for `campaign lineage`.',
    ),
    ...evidence.map(({ capability, citations, lacking = [] }) => {
      const counts = [
        ...(citations.length > 0 ? [plural(citations.length, 'cited step')] : []),
        ...(lacking.length > 0 ? [plural(lacking.length, 'LACKING trajectory', 'LACKING trajectories')] : []),
      ].join(', ');
      const lackingBlocks = lacking.map((one) => {
        const cited = one.message === undefined ? '' : `, ${one.citing} cite the message`;
        return citationBlock(one, { also: `LACKING in ${one.lacking} of ${one.passes} passes${cited}` });
      });
      return fold(
        [strong(capability), { tone: 'quiet', text: counts }],
        [...citations.map((one) => citationBlock(one)), ...lackingBlocks],
        { open: selected.has(capability) },
      );
    }),
  ];
}

const strong = (text: string): Piece => ({ tone: 'strong', text });

const whose = { environment: 'Environment', user: 'Simulated user' } as const;

function faultBlocks({ found, trajectories }: NonNullable<ReportedSelection['faults']>): Block[] {
  return [
    note(
      'What an agent can’t mend: it never becomes a capability. A failed trajectory counts here if the passes put it down to one of the two more often than to the agent; it is NA for every capability in the passes that do.',
    ),
    ...(trajectories
      ? [
          paragraph([
            'Failed trajectories put down to the environment',
            trajectories.environment,
            'to the simulated user',
            trajectories.user,
          ]),
        ]
      : []),
    {
      kind: 'list',
      items: (trajectories?.examples ?? []).map((one) => [
        ...trajectoryPieces(one, `${whose[one.of].toLowerCase()} in ${one.votes} of ${one.passes} passes:`),
        one.reason,
      ]),
    },
    ...found.map(({ of, what, citations }) =>
      fold(
        [strong(whose[of]), what],
        citations.map((one) => citationBlock(one)),
        { open: true },
      ),
    ),
  ];
}

export function capabilitySections({ capabilities = [], bands, selection }: Report): Section[] {
  const page = (head: string): Column => ({ head, on: 'page' });
  const none = ['no capability was selected', selection?.reason].filter(Boolean).join(': ');
  const calibrated = capabilities.some(({ calibration }) => calibration !== undefined);
  return [
    {
      title: 'Capabilities',
      blocks: [
        capabilities.length === 0 && selection && { ...paragraph(none), on: 'terminal' },
        table(
          [
            'capability',
            'verdict',
            'status',
            page('rounds'),
            page('held-out before'),
            page('held-out after'),
            { head: 'all target tasks', spare: 5 },
            page('what is known'),
          ],
          capabilities.map((one) => [
            [
              one.name,
              ...(one.adapter ? ['\n', 'adapter', { lineage: [one.adapter] }] : []),
              ...(one.parts ? ['\n', compositeText(one)] : []),
            ],
            one.statement?.gamed ? { tone: 'bad', text: verdictText(one) } : verdictText(one),
            statusLine(one),
            one.rounds ? `${one.rounds.length}` : MISSING,
            one.validation?.target.before ?? MISSING,
            one.validation?.target.after ?? MISSING,
            one.onTarget?.all ?? MISSING,
            one.reason ?? one.statement?.text,
          ]),
        ),
      ],
    },
    { title: 'Held-out seeds by branch', level: 3, on: 'page', blocks: branchBlocks(capabilities) },
    {
      title: 'Rounds of synthesis',
      level: 3,
      on: 'page',
      blocks: [
        bands && calibrated && note(`The base model on each version. Accepted: ${bandsText(bands)}.`),
        table(
          [
            ...['capability', 'round', 'self-test', 'verdict', 'mean reward', 'success', 'informative', 'pass@k'],
            'findings',
          ],
          capabilities.flatMap(({ name, rounds = [] }) => rounds.flatMap((round) => roundRows(name, round))),
        ),
      ],
    },
    { title: 'Versions of the environments', level: 3, on: 'page', blocks: capabilities.flatMap(versionBlocks) },
  ];
}

/** Of a composite. */
const compositeText = ({ parts = [] }: Pick<ReportedCapability, 'parts'>): string =>
  `of ${partNames({ parts }).join(', ')}: on their environments in turns, trained from the sum of their adapters`;

/** `helps`, `no gain`, `helps, gamed`. */
const verdictText = ({ statement }: ReportedCapability): string =>
  statement ? `${statement.verdict.replace('_', ' ')}${statement.gamed ? ', gamed' : ''}` : MISSING;

function statusLine({ status, calibration }: ReportedCapability): Line {
  const hints = calibration?.accepted ? hintsText(calibration) : undefined;
  return [(status ?? 'not finished').replace('_', ' '), ...(hints === undefined ? [] : ['\n', `accepted ${hints}`])];
}

/** A gain on one branch that is paid with another is no skill. */
function branchBlocks(capabilities: readonly ReportedCapability[]): Block[] {
  const rows = capabilities.flatMap(({ name, validation }) =>
    (validation?.branches ?? []).map(({ branch, ...of }) => [name, branch, of.before, of.after, of.difference]),
  );
  if (rows.length === 0) return [];
  return [
    note(
      'Success of what the training starts from (the base, or a composite’s sum) and of the best iteration on the same seeds of the synthesized environment. An adapter that rises on one branch and falls on another beyond chance is gamed: it does the same everywhere. The router may choose it all the same, if that pays on the target.',
    ),
    table(['capability', 'branch', 'before', 'best iteration', 'difference'], rows),
  ];
}

const bandsText = (bands: NonNullable<Report['bands']>): string =>
  [
    `mean reward ${bands.meanReward.join(' to ')}`,
    `success ${bands.successRate.join(' to ')}`,
    `all success at most ${bands.maxAllSuccess}`,
    `all zero at most ${bands.maxAllZero}`,
    `constant at most ${bands.maxConstant}`,
    `informative at least ${bands.minInformative}`,
  ].join(', ');

/** A row for each calibration; a round whose self-test failed went back to the synthesizer and has none. */
function roundRows(name: string, round: ReportedRound): Line[][] {
  const { selfTest } = round;
  const [first, ...others] = calibrationsOf(round);
  return [first, ...others].map((calibration) => [
    name,
    `${round.round}`,
    selfTest.passed ? 'passed' : { tone: 'bad', text: 'failed' },
    calibration ? calibrationText(calibration) : 'not calibrated',
    ...(['meanReward', 'successRate', 'informative'] as const).map((measure): Line =>
      calibration
        ? [calibration[measure], ...(calibration.branches ?? []).flatMap((of) => ['\n', of.branch, of[measure]])]
        : MISSING,
    ),
    Object.entries(calibration?.passAt ?? {}).flatMap(([k, figure]) => [`@${k}`, figure]),
    [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; '),
  ]);
}

const calibrationText = (calibration: CalibrationFigures): string =>
  [calibration.verdict.replaceAll('_', ' '), hintsText(calibration), calibration.judged?.text]
    .filter((part) => part !== undefined)
    .join(', ');

/** Every version that was written, with its writer's reason and what changed; then episodes of the last calibration. */
function versionBlocks({ name, rounds = [], episodes = [] }: ReportedCapability): Block[] {
  if (rounds.length === 0) return [];
  return [paragraph(name, 'strong'), ...rounds.map(versionBlock), ...episodes.map(episodeBlock)];
}

function versionBlock(round: ReportedRound): Block {
  const { version, selfTest, decision } = round;
  const calibrations = calibrationsOf(round);
  const summary = [
    selfTest.passed ? 'self-test passed' : 'self-test failed',
    ...calibrations.map((one) => [one.verdict.replaceAll('_', ' '), hintsText(one)].filter(Boolean).join(' ')),
    ...(decision === undefined ? [] : [decision]),
  ].join(', ');
  const apart = round.round > 1 && !version.changes;
  return fold(`Round ${round.round}: ${version.lines} lines, ${summary}`, [
    paragraph(['module', { lineage: [version.module] }, selfTest.hints ? 'gives hints' : undefined], 'quiet'),
    paragraph(version.rationale),
    { kind: 'list', items: [...selfTest.findings, ...calibrations.flatMap(({ reasons }) => reasons)] },
    apart && paragraph('too little in common with the round before to compare them', 'quiet'),
    ...diffBlocks(version),
  ]);
}
