/**
 * Renders a report. Invariants: the verdict is computed here from the figures, whatever came in; report.json and report.html hold the same; the page is
 * made of report.json alone.
 */
import { statementOf } from './adapters';
import { reportHtml } from './html';
import { type Report, REPORT_VERSION, type ReportDraft, reportSchema } from './model';
import { recommendationOf } from './recommendation';
import { doubtsOf } from './verdict';

/** The whole report, checked. Throws a ZodError that names the field if the draft breaks the schema. */
export function completeReport(draft: ReportDraft): Report {
  const recommendation = recommendationOf(draft);
  const capabilities = draft.capabilities?.map((one) => ({ ...one, statement: statementOf(one) }));
  const complete = { ...draft, capabilities, recommendation };
  const { text, behind } = recommendation ?? {};
  const verdict = [...(text !== undefined && behind ? [{ text, behind }] : []), ...doubtsOf(complete)];
  return reportSchema.parse({ ...complete, schemaVersion: REPORT_VERSION, verdict });
}

/** The two files' texts: report.json (indented) and report.html; and the verdict's first sentence, which says what came out. */
export const renderReport = ({ report }: { report: ReportDraft }) => {
  const complete = completeReport(report);
  const [first] = complete.verdict;
  return { json: `${JSON.stringify(complete, null, 2)}\n`, html: reportHtml(complete), verdict: first?.text ?? '' };
};
