/** What is printed when a campaign has ended: the table of the arms, and where to look further. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { reportSchema, type Report } from '../../domain/report';
import { shortEpisode } from '../../report/terminal-base';
import { terminalTable } from '../../report/terminal';
import { messageOf, UserError } from '../errors';
import type { Home } from '../project';

export interface CampaignSummary {
  /** The table of the arms. */
  table: string;
  /** Path of report.html. */
  report: string;
  /** The same for programs, as report.json has it. */
  result: Pick<Report, 'rollouts' | 'base'> & Pick<Report['campaign'], 'status' | 'stage'>;
}

/** A report that is missing or no report. */
export class ReportLost extends UserError {
  constructor(
    readonly file: string,
    /** What is wrong with it. */
    readonly problem: string,
    fix: string,
  ) {
    super(`the report ${file} is ${problem}; ${fix}`);
  }
}

/** @throws ReportLost */
export function readSummary({ home, name }: { home: Home; name: string }): CampaignSummary {
  const file = join(home.root, name, 'report.json');
  if (!existsSync(file))
    throw new ReportLost(file, 'missing', `if campaign ${name} was run with another --home, name that one`);
  let report: Report;
  try {
    report = reportSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error).replace(/\s*\n\s*/g, ' ') : messageOf(error);
    throw new ReportLost(file, `damaged (${why})`, 'the same `campaign run` writes it anew');
  }
  const { campaign, rollouts, base } = report;
  const { status, stage } = campaign;
  return {
    table: terminalTable(report, process.stdout.columns),
    report: join(home.root, name, 'report.html'),
    result: {
      status,
      stage,
      ...(rollouts && { rollouts }),
      ...(base && { base: { ...base, conversations: base.conversations.map(shortEpisode) } }),
    },
  };
}

/** What is wrong with the report of a campaign that has ended; undefined if nothing is. */
export function lostReport(of: { home: Home; name: string }): ReportLost | undefined {
  try {
    readSummary(of);
    return undefined;
  } catch (error) {
    if (error instanceof ReportLost) return error;
    throw error;
  }
}
