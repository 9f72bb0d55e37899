/** The requirements of a machine and of a campaign. `campaign check` and `campaign run` go through the same list. */
import type { Check, CheckItem } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import type { Stage } from '../../domain/work';
import { wrap } from '../../terminal';
import { InputError, type Problem } from '../errors';
import type { Home } from '../project';
import { languageModelChecks, tinkerChecks } from './endpoints';
import {
  buildCheck,
  curvesChecks,
  gpuCheck,
  homeCheck,
  memoryCheck,
  nodeCheck,
  pythonChecks,
  storeCheck,
  temporalCheck,
  temporaryCheck,
} from './machine';
import { modelChecks, serverTrials } from './model';
import { bridgeChecks, type OpenedTarget, targetChecks } from './target';

export function requirements(o: {
  home: Home;
  campaign?: Campaign | undefined;
  /** Also sends one request to each language model, and tries adapters on a vLLM. */
  closely?: boolean;
  until?: Stage | undefined;
  /** A Temporal cluster is already running. */
  cluster?: boolean;
  ask?: () => Promise<OpenedTarget>;
}): CheckItem[] {
  const { home, campaign, closely = false, until, cluster = false, ask } = o;
  const machine = [
    ...(closely ? [nodeCheck(), memoryCheck()] : []),
    homeCheck(home, campaign),
    temporaryCheck(),
    storeCheck(home),
    buildCheck(),
    ...pythonChecks(),
    ...(cluster ? [] : [temporalCheck()]),
  ];
  if (!campaign) return machine;
  return [
    ...machine,
    ...modelChecks(campaign, undefined, home.root),
    ...tinkerChecks(campaign, { tries: closely }),
    ...bridgeChecks(campaign),
    ...targetChecks({ campaign, home, until, ask }),
    ...curvesChecks(campaign),
    ...languageModelChecks(campaign, { asks: closely }),
    ...(closely ? [gpuCheck(campaign), ...serverTrials(campaign, home)] : []),
  ];
}

/** @throws InputError with all missing requirements. */
export function requireAll(checks: readonly Check[]): void {
  const [first, ...others] = checks.flatMap(({ name: field, ok, detail: value, fix }): Problem[] =>
    ok ? [] : [{ code: 'missing_requirement', field, value, fix }],
  );
  if (first) throw new InputError(first, ...others);
}

/** Least number of columns for the text of a check. */
const NARROWEST = 30;

/** One line per check, wrapped under its text, or under its name on a narrow terminal. */
export const checkLines = (checks: readonly Check[], columns?: number): string[] => {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks.flatMap(({ name, ok, warning, detail, fix }) => {
    const head = `${warning ? 'warning' : ok ? 'ok     ' : 'missing'}  ${name.padEnd(width)}  `;
    const text = `${detail}${fix ? `; ${fix}` : ''}`;
    if (columns !== undefined && columns < head.length + NARROWEST)
      return [head.trimEnd(), ...wrap(`  ${text}`, columns, { indent: 2 })];
    return wrap(`${head}${text}`, columns, { indent: head.length });
  });
};
