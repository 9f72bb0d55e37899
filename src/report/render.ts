/**
 * Renders a report. Invariants: the verdict is computed here from the figures, whatever came in; report.json and report.html hold the same; the page is
 * one self-contained file: no script, nothing fetched, every text escaped (page/blocks.ts).
 */
import { type Report, REPORT_VERSION, type ReportDraft, reportSchema } from './model';
import { statementOf } from './adapters';
import { comparisonsOf, recommendationOf } from './recommendation';
import { verdict } from './verdict';
import {
  armsSection,
  baseSection,
  groupsSection,
  headerSection,
  solverMatrixSection,
  verdictSection,
} from './page/results';
import { capabilitiesSection, faultsSection, selectionSection } from './page/capabilities';
import { markup, pageOf } from './page/blocks';
import { routerSection, runSection, trainingSection } from './page/training';

/** The whole report, checked. Throws a ZodError that names the field if the draft breaks the schema. */
export const completeReport = (draft: ReportDraft): Report =>
  reportSchema.parse({
    ...draft,
    schemaVersion: REPORT_VERSION,
    capabilities: draft.capabilities?.map((one) => ({ ...one, statement: statementOf(one) })),
    comparisons: comparisonsOf(draft),
    recommendation: recommendationOf(draft),
    verdict: verdict(draft),
  });

/** The two files' texts: report.json (indented) and report.html; and the verdict's first sentence, which says what came out. */
export const renderReport = ({ report }: { report: ReportDraft }) => {
  const complete = completeReport(report);
  const [first] = complete.verdict;
  return { json: `${JSON.stringify(complete, null, 2)}\n`, html: reportHtml(complete), verdict: first?.text ?? '' };
};

const reportHtml = (report: Report): string =>
  pageOf({
    title: `${report.campaign.name}: campaign report`,
    body: markup`${headerSection(report)}
${verdictSection(report)}
${armsSection(report)}
${groupsSection(report)}
${baseSection(report)}
${solverMatrixSection(report)}
${selectionSection(report)}
${faultsSection(report)}
${capabilitiesSection(report)}
${trainingSection(report)}
${routerSection(report)}
${runSection(report)}
<p class="small quiet">Every figure opens to the artifacts that it came from and to the command that walks back to their rollouts.</p>`,
  });
