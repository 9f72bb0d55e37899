/** One thing that a campaign needs, looked at before any work starts. */
import type { Stage } from '../domain/campaign';

export interface Check {
  name: string;
  ok: boolean;
  /** Nothing is missing, but the campaign comes to less than it might. */
  warning?: true;
  /** What was found, on one line. */
  detail: string;
  /** How to get what is missing. */
  fix?: string;
}

export const passed = (name: string, detail: string): Check => ({ name, ok: true, detail });
/** `fix` is left out where `detail` says it. */
export const failed = (name: string, detail: string, fix?: string): Check => ({
  ...{ name, ok: false, detail },
  ...(fix !== undefined && { fix }),
});

/** Of a model whose cost a budget in dollars can't count. */
export const withoutPrice = (name: string, field: string, dollars: number): Check =>
  failed(name, `budget.dollars is ${dollars}, and ${field}.price is missing`, 'set it, or budget.tokens instead');

export const warned = (name: string, detail: string): Check => ({ name, ok: true, warning: true, detail });

/** Of what works on the base rollouts: nothing is lacking in a run that stops after these. */
export const afterRollouts = (checks: readonly Check[], until: Stage | undefined): Check[] =>
  checks.map((check) =>
    check.ok || until !== 'rollouts' ? check : warned(check.name, `needed after the rollouts: ${textOf(check)}`),
  );

/** What is wrong and how it is mended. */
export const textOf = ({ detail, fix }: Check): string => [detail, fix].filter(Boolean).join('; ');

export const warningsOf = (checks: readonly Check[]): string[] =>
  checks.filter(({ warning }) => warning).map(({ name, detail }) => `${name}: ${detail}`);
