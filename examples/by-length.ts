/** A router that counts words: on each side of the median the option that was better there. A line in src/routing/index.ts uses it. */
import { z } from 'zod';
import { OutsideFailure } from '../src/domain/failures';
import { defineKind } from '../src/domain/kinds';
import { agentView, type Message } from '../src/domain/messages';
import { mean, populationStd } from '../src/domain/statistics';
import { firstUserMessage, type RouterKind } from '../src/routing/router';

const splitSchema = z.object({ median: z.number(), shorter: z.array(z.number()), longer: z.array(z.number()) });
/** Of a task: words of its request, success by option in the options' order. */
type Row = { words: number; rates: number[] };

const wordsOf = (messages: readonly Message[]) => firstUserMessage(agentView(messages)).split(/\s+/).length;
const average = (rows: Row[]) => rows[0]!.rates.map((_, option) => mean(rows.map(({ rates }) => rates[option]!)));
const ratesAt = (o: z.infer<typeof splitSchema>, words: number) => (words < o.median ? o.shorter : o.longer);
/** The first one, `base`, wins ties. */
const best = (rates: number[]) => rates.indexOf(Math.max(...rates));

function splitAtMedian(rows: Row[]) {
  const median = rows.map(({ words }) => words).sort((a, b) => a - b)[rows.length >> 1]!;
  const shorter = rows.filter(({ words }) => words < median);
  const longer = rows.filter(({ words }) => words >= median);
  return { median, shorter: average(shorter.length > 0 ? shorter : rows), longer: average(longer) };
}

function summary(values: number[]) {
  const standardError = populationStd(values) / Math.sqrt(values.length - 1);
  return { mean: mean(values), standardError, n: values.length };
}

export const byLength: RouterKind = defineKind({
  kind: 'by_length',
  version: '1',
  options: {},
  open: (_options, identity) => ({
    identity,
    async fit({ options, tasks }) {
      if (tasks.length < 2) throw new OutsideFailure('BadInput', 'router.tasks: too few; 2 or more can be split');
      const rows = [...tasks]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((task) => ({ words: wordsOf(task.messages), rates: options.map((o) => mean(task.outcomes[o.name]!)) }));
      // Each task is routed by a split of the other half, which has not seen it.
      const folds = [0, 1].map((fold) => splitAtMedian(rows.filter((_, n) => n % 2 !== fold)));
      const routed = summary(rows.map(({ words, rates }, n) => rates[best(ratesAt(folds[n % 2]!, words))]!));
      const of = (option: number) => summary(rows.map(({ rates }) => rates[option]!));
      const single = best(average(rows));
      const bestSingle = { option: options[single]!.name, ...of(single) };
      const helps = routed.mean > bestSingle.mean;
      const unionCeiling = summary(rows.map(({ rates }) => Math.max(...rates)));
      const crossValidation = { helps, routed, base: of(0), bestSingle, unionCeiling };
      return { ...(!helps && { constant: bestSingle.option }), crossValidation, parameters: splitAtMedian(rows) };
    },
    async choose({ fitted: { options, parameters }, messages }) {
      const rates = ratesAt(splitSchema.parse(parameters), wordsOf(messages));
      const { name, policy } = options[best(rates)]!;
      return { chosen: name, policy, probabilities: Object.fromEntries(options.map((o, n) => [o.name, rates[n]!])) };
    },
  }),
});
