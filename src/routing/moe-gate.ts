/**
 * All adapters behind a gate inside the model (the method's variant `moe_gate`), which weighs them in every layer at every token. The gate is
 * trained on the successes in the outcome matrix (src/activities/router.ts) and stands in it as one more option, the last. Invariant: it
 * gets the conversations only where it solves more of the router's tasks than every option that was there without it: hard choices first.
 */
import { defineKind } from '../domain/kinds';
import { policyNames } from '../domain/policies';
import { mean, populationStd } from '../domain/statistics';
import type { CrossValidated, FitInput, RouterKind } from './router';

export const moeGate: RouterKind = {
  ...defineKind({
    kind: 'moe_gate',
    version: '1',
    options: {},
    open: (_options, identity) => ({
      identity,
      async fit({ options, tasks }: FitInput) {
        const rates = new Map(options.map(({ name }) => [name, tasks.map(({ outcomes }) => mean(outcomes[name]!))]));
        const bestSingle = bestOf([...rates].filter(([name]) => name !== policyNames.gate));
        const best = bestOf([...rates]);
        return {
          constant: best.option,
          crossValidation: {
            helps: best.option === policyNames.gate,
            routed: summaryOf(rates.get(best.option)!),
            base: summaryOf(rates.get(policyNames.base)!),
            bestSingle,
            unionCeiling: summaryOf(tasks.map((_, n) => Math.max(...[...rates.values()].map((of) => of[n]!)))),
          },
          parameters: {},
        };
      },
      choose: () => Promise.reject(new Error('a gate gives every conversation to one option')),
    }),
  }),
  trainsGate: true,
};

/** Of equals the first. */
function bestOf(rates: [option: string, rates: number[]][]): { option: string } & CrossValidated {
  const scored = rates.map(([option, values]) => ({ option, ...summaryOf(values) }));
  const most = Math.max(...scored.map((one) => one.mean));
  return scored.find((one) => one.mean === most)!;
}

const summaryOf = (values: number[]): CrossValidated => ({
  mean: mean(values),
  standardError: values.length > 1 ? populationStd(values) / Math.sqrt(values.length - 1) : 0,
  n: values.length,
});
