/** `campaign doctor`, and the list of checks that it and `campaign run` go through. Nothing stays running. */
import { type Check, type CheckItem, runChecks, textOf } from '../checks/check';
import type { Campaign } from '../domain/campaign';
import type { Stage } from '../domain/work';
import { print, wrap } from '../terminal';
import { loadCampaign } from './campaign-file';
import { languageModelChecks, tinkerChecks } from './checks/endpoints';
import {
  buildCheck,
  curvesChecks,
  gpuCheck,
  homeCheck,
  temporaryCheck,
  memoryCheck,
  nodeCheck,
  portCheck,
  pythonChecks,
  storeCheck,
  temporalCheck,
} from './checks/machine';
import { modelChecks, serverTrials } from './checks/model';
import { bridgeChecks, targetChecks } from './checks/target';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { type PortOptions, temporalPort, uiPort } from './ports';
import type { Home } from './project';

export type DoctorOptions = CommonOptions & PortOptions;

/** @returns the exit code. */
export async function doctor(file: string | undefined, options: DoctorOptions): Promise<number> {
  const campaign = file === undefined ? undefined : loadCampaign({ file });
  const checks = await runChecks(checksOf({ home: homeOf(options), doctor: options, campaign }));
  print(options.json ? JSON.stringify(checks) : doctorLines(checks, process.stdout.columns).join('\n'));
  return checks.every(({ ok }) => ok) ? 0 : 1;
}

/**
 * What has to be there: on the machine, and for a campaign where there is one. A doctor looks closer: it asks language models, tries the
 * policy server's adapters, and starts an embedded server once.
 */
export function checksOf(o: {
  home: Home;
  campaign?: Campaign | undefined;
  /** The ports that the user named for a doctor to look at; undefined for `campaign run`, which chooses them itself. */
  doctor?: PortOptions | undefined;
  until?: Stage | undefined;
  /** Whether a Temporal cluster is there already. */
  cluster?: boolean;
}): CheckItem[] {
  const { home, campaign, doctor, until, cluster = false } = o;
  const machine = [
    ...(doctor ? [nodeCheck(), memoryCheck()] : []),
    homeCheck(home, campaign),
    temporaryCheck(),
    storeCheck(home),
    buildCheck(),
    ...pythonChecks(),
    ...(cluster ? [] : [temporalCheck()]),
    ...(doctor ? [portCheck(temporalPort, doctor.temporalPort), portCheck(uiPort, doctor.uiPort)] : []),
  ];
  if (!campaign) return machine;
  return [
    ...machine,
    ...modelChecks(campaign, undefined, home.root),
    ...tinkerChecks(campaign, { tries: doctor !== undefined }),
    ...bridgeChecks(campaign),
    ...targetChecks({ campaign, home, until }),
    ...curvesChecks(campaign),
    ...languageModelChecks(campaign, { asks: doctor !== undefined }),
    ...(doctor ? [gpuCheck(campaign), ...serverTrials(campaign, home)] : []),
  ];
}

/** @throws UserError naming the first thing that is missing, with the others as its evidence. */
export function requireAll(checks: readonly Check[]): void {
  const lines = checks.filter(({ ok }) => !ok).map((check) => `${check.name}: ${textOf(check)}`);
  if (lines[0]) throw new UserError(lines[0], lines.slice(1));
}

/** Columns that what is said of a check has at least. */
const NARROWEST = 30;

/** One line per check; what is missing says how to get it. Longer than the terminal is wide (`columns`), it goes on under itself. */
export const doctorLines = (checks: readonly Check[], columns?: number): string[] => {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks.map(({ name, ok, warning, detail, fix }) => {
    const head = `${warning ? 'warning' : ok ? 'ok     ' : 'missing'}  ${name.padEnd(width)}  `;
    const indent = columns !== undefined && columns < head.length + NARROWEST ? 2 : head.length;
    return wrap(`${head}${detail}${fix ? `; ${fix}` : ''}`, columns, { indent }).join('\n');
  });
};
