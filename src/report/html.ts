/** report.html. Invariant: one self-contained file: no script, nothing fetched, every text escaped (markup.ts). */
import type { Report } from './model';
import { armsSection } from './arms-section';
import { baseSection } from './base-section';
import { capabilitiesSection } from './capabilities-section';
import { faultsSection } from './evidence-section';
import { groupsSection } from './groups-section';
import { Markup, markup } from './markup';
import { headerSection, selectionSection, solverMatrixSection, verdictSection } from './sections';
import { style } from './style';
import { routerSection, runSection, trainingSection } from './training-sections';

export const reportHtml = (report: Report): string =>
  markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${report.campaign.name}: campaign report</title><style>${new Markup(style)}</style></head><body>
${headerSection(report)}
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
<p class="small quiet">Every figure opens to the artifacts that it came from and to the command that walks back to their rollouts.</p>
</body></html>
`.text;
