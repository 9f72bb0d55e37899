/** What waits for approval, as sections: enough on a terminal to decide, all of it on the page. */
import type { CalibrationReport } from '../../domain/calibration';
import { hintsText } from '../adapters';
import { percent } from '../format';
import { pageHtml } from '../html';
import { citationBlock, diffBlocks, episodeBlock } from '../quoted';
import { type Block, paragraph, type Section } from '../section';
import { terminalText } from '../terminal';
import type { ApprovalView, CapabilityView, EnvironmentView } from '../build/approval';

export interface Waits {
  view: ApprovalView;
  /** The command that approves it, and how it is rejected or edited. */
  commands: readonly string[];
}

/** What waits in a campaign; `at` is when it was looked at. */
export function approvalHtml(o: { campaign: string; at: string; waits: readonly Waits[] }): string {
  const { campaign, at, waits } = o;
  const none = waits.length === 0 && paragraph('Nothing waits for approval.');
  const sections: Section[] = [
    { blocks: [paragraph(`What waits for approval as of ${at}`, 'quiet'), none] },
    ...waits.flatMap(({ view, commands }) => [
      ...sectionsOf(view),
      { title: 'To decide', level: 3 as const, blocks: commands.map((code) => paragraph({ code })) },
    ]),
  ];
  return pageHtml({ title: `${campaign}: waits for approval`, campaign, sections });
}

export const approvalText = (view: ApprovalView): string => terminalText(sectionsOf(view));

const sectionsOf = (view: ApprovalView): Section[] =>
  'capabilities' in view ? view.capabilities.map(capabilitySection) : environmentSections(view.environment);

const capabilitySection = (view: CapabilityView): Section => ({
  title: view.candidate.name,
  blocks: [
    paragraph(view.candidate.definition),
    paragraph(votesText(view), 'quiet'),
    ...view.citations.map((citation) => citationBlock(citation, { open: true })),
  ],
});

/** `9 of 10 votes, Cov 0.42 ± 0.05, Delta 0.31 ± 0.04`. */
function votesText({ votes, passes, coverage, delta }: CapabilityView): string {
  if (!coverage || !delta) return 'selected by the analyst outright: nothing was labeled';
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return `${votes} of ${passes} votes, Cov ${figure(coverage)}, Delta ${figure(delta)}`;
}

function environmentSections(view: EnvironmentView): Section[] {
  const { candidate, round, version, calibration, episodes, earlier } = view;
  const facts: [string, string][] = [
    ['Module', `${version.lines} lines, ${version.module.sha256}`],
    ...(version.rationale === undefined ? [] : [['Rationale', version.rationale] as [string, string]]),
    ...(calibration ? calibrationFacts(calibration, hintsText(view)) : []),
    ...earlier.map((one): [string, string] => [`Round ${one.round}`, one.summary]),
  ];
  const head: Block[] = [paragraph(candidate.definition), { kind: 'facts', rows: facts }];
  return [
    { title: `Environment of ${candidate.name}, round ${round}`, blocks: head },
    { title: 'Changes to the round before', level: 3, blocks: diffBlocks(version) },
    { title: 'Episodes of the base model', level: 3, blocks: episodes.map(episodeBlock) },
  ];
}

/** Its mean reward and the like, which must be within the bands. */
function calibrationFacts(calibration: CalibrationReport, hints: string | undefined): [string, string][] {
  const { meanReward, successRate, allZero, allSuccess, informative, judged } = calibration;
  const shares = { success: successRate, 'all-zero': allZero, 'all-success': allSuccess, informative };
  const parts = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return [
    [['Base model', hints].filter(Boolean).join(', '), [`mean reward ${meanReward.toFixed(2)}`, ...parts].join(', ')],
    ...(judged ? [['Judged', judged.text] as [string, string]] : []),
  ];
}
