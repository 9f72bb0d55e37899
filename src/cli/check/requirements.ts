/** The requirements of a machine and of a campaign. `campaign check` and `campaign run` go through the same list. */
import { type Check, type CheckItem, textOf } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import type { Stage } from '../../domain/work';
import { wrap } from '../../terminal';
import { InputError, type Problem } from '../errors';
import type { Home } from '../project';
import { languageModelChecks, tinkerChecks } from './endpoints';
import { gpuCheck, homeCheck, pythonCheck, storeCheck, temporalCheck } from './machine';
import { modelChecks } from './model';
import { type OpenedTarget, targetChecks } from './target';

export function requirements(o: {
  home: Home;
  campaign?: Campaign | undefined;
  /** Also sends one request to each language model, and counts the GPUs. */
  closely?: boolean;
  until?: Stage | undefined;
  /** A Temporal cluster is already running. */
  cluster?: boolean;
  ask?: () => Promise<OpenedTarget>;
}): CheckItem[] {
  const { home, campaign, closely = false, until, cluster = false, ask } = o;
  const machine = [homeCheck(home), storeCheck(home), pythonCheck(), ...(cluster ? [] : [temporalCheck()])];
  if (!campaign) return machine;
  return [
    ...machine,
    ...modelChecks(campaign, undefined, home.root),
    ...tinkerChecks(campaign, { tries: closely }),
    ...targetChecks({ campaign, home, until, ask }),
    ...languageModelChecks(campaign, { asks: closely }),
    ...(closely ? [gpuCheck(campaign)] : []),
  ];
}

/** @throws InputError with all missing requirements. */
export function requireAll(checks: readonly Check[]): void {
  const [first, ...others] = checks.flatMap(({ name: field, ok, detail: value, fix }): Problem[] =>
    ok ? [] : [{ code: 'missing_requirement', field, value, fix }],
  );
  if (first) throw new InputError(first, ...others);
}

/** One line per check, wrapped under its name. */
export const checkLines = (checks: readonly Check[], columns?: number): string[] => {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks.flatMap((check) => {
    const state = check.warning ? 'warning' : check.ok ? 'ok     ' : 'missing';
    const head = `${state}  `;
    return wrap(`${head}${check.name.padEnd(width)}  ${textOf(check)}`, columns, { indent: head.length });
  });
};
