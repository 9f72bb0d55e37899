/** What a machine needs, and what a campaign does: the list that `campaign doctor` and `campaign run` go through. Nothing stays running. */
import type { Check, CheckItem } from '../checks/check';
import type { Campaign, Stage } from '../domain/campaign';
import { wrap } from '../terminal';
import { languageModelChecks } from './checks/language-models';
import {
  buildCheck,
  gpuCheck,
  homeCheck,
  memoryCheck,
  nodeCheck,
  portCheck,
  pythonChecks,
  temporalCheck,
} from './checks/machine';
import { modelChecks, serverTrials } from './checks/model';
import { bridgeChecks, targetChecks } from './checks/target';
import { type PortOptions, temporalPort, uiPort } from './ports';
import type { Home } from './project';

/** What has to be there for `campaign run`. */
export function runRequirements(o: {
  home: Home;
  campaign: Campaign;
  until: Stage | undefined;
  /** Whether the home's own Temporal server is started. */
  temporal: boolean;
}): CheckItem[] {
  const { home, campaign, until, temporal } = o;
  return [
    homeCheck(home, campaign),
    buildCheck(),
    ...pythonChecks(),
    ...(temporal ? [temporalCheck()] : []),
    ...modelChecks(campaign),
    ...bridgeChecks(campaign),
    ...targetChecks({ campaign, home, until }),
    ...languageModelChecks(campaign, { asks: false }),
  ];
}

/** The machine; with a campaign, also what that needs: language models and the policy server are tried, and an embedded one is started once. */
export function doctorChecks(o: { home: Home; ports: PortOptions; campaign?: Campaign | undefined }): CheckItem[] {
  const { home, ports, campaign } = o;
  const machine = [
    nodeCheck(),
    memoryCheck(),
    homeCheck(home, campaign),
    buildCheck(),
    ...pythonChecks(),
    temporalCheck(),
    portCheck(temporalPort, ports.temporalPort),
    portCheck(uiPort, ports.uiPort),
  ];
  if (!campaign) return machine;
  return [
    ...machine,
    ...modelChecks(campaign),
    ...bridgeChecks(campaign),
    ...targetChecks({ campaign, home, asksTokenizer: true }),
    ...languageModelChecks(campaign, { asks: true }),
    gpuCheck(campaign),
    ...serverTrials(campaign, home),
  ];
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
