/**
 * Renders a report. Invariants: the verdict is always computed here from the figures; report.json and report.html have the same content; the page is
 * rendered from report.json alone.
 */
import { reportHtml } from './html';
import { type Report, REPORT_VERSION, type ReportDraft } from './model';
import { recommendationOf, verdictOf } from './recommendation';
import { doubtsOf, statementOf } from './verdict';

/** The whole report, its figures checked. */
export function completeReport(draft: ReportDraft): Report {
  const recommendation = recommendationOf(draft);
  const capabilities = draft.capabilities?.map((one) => ({ ...one, statement: statementOf(one) }));
  const complete = { ...draft, capabilities, recommendation };
  return { ...complete, schemaVersion: REPORT_VERSION, doubts: doubtsOf(complete) };
}

/** The two files' texts: report.json (indented) and report.html; and the report's first sentences. */
export const renderReport = ({ report }: { report: ReportDraft }) => {
  const complete = completeReport(report);
  return { json: `${JSON.stringify(complete, null, 2)}\n`, html: reportHtml(complete), verdict: verdictOf(complete) };
};
