/** A router as a plug-in: the base model plays short requests, the last of the policies plays long ones. */
import { defineKind, firstUserMessage, mean, populationStd, z } from 'trace-campaign/plugin';

export const name = 'campaign-by-length';
export const version = '1';

const byLength = defineKind({
  kind: 'by_length',
  version: '1',
  options: { words: z.number().int().min(1).describe('The base model plays requests of fewer words.') },
  open({ words }, identity) {
    const choose = (options, messages) => options.at(firstUserMessage(messages).split(/\s+/).length < words ? 0 : -1);
    return {
      identity,
      async fit({ options, tasks }) {
        const summarize = (choice) => {
          const rates = tasks.map((task) => mean(task.outcomes[choice(task).name]));
          return { mean: mean(rates), standardError: populationStd(rates) / Math.sqrt(rates.length), n: rates.length };
        };
        const each = options.map((option) => ({ option: option.name, ...summarize(() => option) }));
        const bestSingle = each.reduce((best, one) => (one.mean > best.mean ? one : best));
        const routed = summarize(({ messages }) => choose(options, messages));
        const base = summarize(() => options[0]);
        const crossValidation = { helps: true, routed, base, bestSingle, unionCeiling: bestSingle };
        return { crossValidation, parameters: null };
      },
      async choose({ fitted: { options }, messages }) {
        const { name, policy } = choose(options, messages);
        return { chosen: name, policy, probabilities: {} };
      },
    };
  },
});
export const routers = [byLength];
