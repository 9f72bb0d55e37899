/** The sections on the capabilities and the rounds of their synthesis. */
import { capabilitySentence } from '../adapters';
import type { CalibrationFigures, ReportedCapability, ReportedRound } from '../capability-model';
import type { Report } from '../model';
import { type Block, type Blocks, details, heading, type Line, list, note, paragraph, table } from '../blocks';

const BRANCHES =
  'Success of the base and of the best iteration on the same seeds of the synthesized environment. Where these seeds chose it, as its sentence above says, it stands a little too high. An adapter that rises on one branch and falls on another significantly is gamed: it does the same everywhere. The router may choose it all the same, if that pays on the target.';

export function capabilityBlocks({ capabilities = [], bands, selection }: Report): Blocks {
  const none = ['no capability was selected', selection?.reason].filter(Boolean).join(': ');
  const calibrated = capabilities.some(({ calibration }) => calibration !== undefined);
  const branches = capabilities.flatMap(({ name, validation }) =>
    (validation?.branches ?? []).map((branch) => ({ name, ...branch })),
  );
  return [
    heading('Capabilities'),
    selection && capabilities.length === 0 && paragraph(none),
    table(capabilities, [
      ['capability', nameLine],
      ['verdict', verdictPiece],
      ['status', statusLine],
      ['rounds', ({ rounds }) => rounds && `${rounds.length}`, { detail: true }],
      ['held-out before', ({ validation }) => validation?.target.before, { detail: true }],
      ['held-out after', ({ validation }) => validation?.target.after, { detail: true }],
      ['all target tasks', ({ onTarget }) => onTarget?.all, { spare: 5 }],
    ]),
    list(
      capabilities.flatMap((one) => {
        const { text, behind } = capabilitySentence(one) ?? {};
        return text === undefined ? [] : [[text, { lineage: behind ?? [] }]];
      }),
    ),
    ...details(
      heading('Held-out seeds by branch', 3),
      branches.length > 0 && note(BRANCHES),
      table(branches, [
        ['capability', ({ name }) => name],
        ['branch', ({ branch }) => branch],
        ['before', ({ before }) => before],
        ['best iteration', ({ after }) => after],
        ['difference', ({ difference }) => difference],
      ]),
      heading('Rounds of synthesis', 3),
      bands && calibrated && note(`The base model on each version. Accepted: ${bandsText(bands)}.`),
      roundsTable(capabilities),
    ),
  ];
}

const nameLine = ({ name, adapter }: ReportedCapability): Line => [
  name,
  ...(adapter ? ['\n', 'adapter', { lineage: [adapter] }] : []),
];

/** `helps`, `no gain`, `helps, gamed`. */
function verdictPiece({ statement }: ReportedCapability): Line {
  const text = statement?.verdict.replace('_', ' ');
  return statement?.gamed ? { tone: 'bad', text: `${text}, gamed` } : text;
}

const statusLine = ({ status }: ReportedCapability): Line => (status ?? 'not finished').replace('_', ' ');

const bandsText = (bands: NonNullable<Report['bands']>): string =>
  [
    `mean reward ${bands.meanReward.join(' to ')}`,
    `success ${bands.successRate.join(' to ')}`,
    `all success at most ${bands.maxAllSuccess}`,
    `all zero at most ${bands.maxAllZero}`,
    `constant at most ${bands.maxConstant}`,
    `informative at least ${bands.minInformative}`,
  ].join(', ');

/** A round whose self-test failed went back to the synthesizer and has no calibration. */
function roundsTable(capabilities: readonly ReportedCapability[]): Block {
  interface Row {
    name: string;
    round: ReportedRound;
    calibration: CalibrationFigures | undefined;
  }
  const rows = capabilities.flatMap(({ name, rounds = [] }) =>
    rounds.map((round): Row => ({ name, round, calibration: round.calibration })),
  );
  const measured =
    (measure: 'meanReward' | 'successRate' | 'informative') =>
    ({ calibration }: Row): Line =>
      calibration && [
        calibration[measure],
        ...(calibration.branches ?? []).flatMap((of) => ['\n', of.branch, of[measure]]),
      ];
  return table(rows, [
    ['capability', ({ name }) => name],
    ['round', ({ round }) => [`${round.round}`, { lineage: [round.module] }]],
    ['self-test', ({ round }) => (round.selfTest.passed ? 'passed' : { tone: 'bad', text: 'failed' })],
    [
      'verdict',
      ({ round, calibration: one }) =>
        [one?.verdict.replaceAll('_', ' ') ?? 'not calibrated', one?.judged?.text, round.decision]
          .filter(Boolean)
          .join(', '),
    ],
    ['mean reward', measured('meanReward')],
    ['success', measured('successRate')],
    ['informative', measured('informative')],
    [
      'pass@k',
      ({ calibration }) =>
        Object.entries(calibration?.passAt ?? {}).flatMap(([k, of], n) => [n > 0 ? '\n' : undefined, `@${k}`, of]),
    ],
    ['findings', ({ round, calibration }) => [...round.selfTest.findings, ...(calibration?.reasons ?? [])].join('; ')],
  ]);
}
