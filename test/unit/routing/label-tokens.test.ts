/** The base model as classifier: what it is asked, what is made of its labels, and how similar tasks are found. */
import type { Message } from '../../../src/domain/messages';
import {
  chooseByLabels,
  labelLogprobs,
  neededParts,
  type LabelsModel,
  similarWords,
} from '../../../src/routing/label-tokens';

const names = ['base', 'cancels', 'returns'];
const options = [...names, 'cancels+returns'];
const examples = [
  { text: 'cancel the lamp', needed: ['cancels'] },
  { text: 'return the lamp', needed: ['returns'] },
  { text: 'thanks', needed: ['base'] },
  { text: 'cancel the chair', needed: ['cancels'] },
];
const definitions = { cancels: 'Cancels items.', returns: 'Returns items.' };
const similar = similarWords(examples.map(({ text }) => text));
const asked = async (text: string, neighbours: number, tokens: [string, number][]) => {
  let messages: Message[] = [];
  const likeliest = async (given: Message[]) => {
    messages = given;
    return tokens.map(([token, logprob]) => ({ token, logprob }));
  };
  const logprobs = await labelLogprobs({ text, names, definitions, examples, neighbours, similar, likeliest });
  return { logprobs, said: messages[0]!.content };
};

test('similar tasks name the candidates, each with a label, its definition and its most similar example', async () => {
  const { logprobs, said } = await asked('cancel the desk', 4, [
    ['B', -0.2],
    [' A', -2],
    ['the', -3],
  ]);
  expect(said.split('\n').slice(0, 3)).toEqual([
    'A: none of these For example: thanks',
    'B: cancels: Cancels items. For example: cancel the lamp',
    'C: returns: Returns items. For example: return the lamp',
  ]);
  // What is not among the likeliest is at most as likely as the last of them.
  expect(logprobs).toEqual([-2, -0.2, -3]);
});

const model: LabelsModel = {
  ...{ form: 'labels', options, names, definitions, examples },
  ...{ neighbours: 4, temperature: 2, prior: [0, 0, 1], nucleus: 0.8 },
};

test('the nucleus of the calibrated labels is a sum; the base model, where it is the likeliest, is alone', () => {
  const { chosen, probabilities } = chooseByLabels(model, [-6, -1, -3]);
  // -3, -0.5, -1.5 + 1 = -0.5.
  expect(chosen).toBe('cancels+returns');
  expect(probabilities['cancels']).toBeCloseTo(1 / (2 + Math.exp(-2.5)), 9);
  expect(chooseByLabels(model, [-6, -1, -9]).chosen).toBe('cancels');
  expect(chooseByLabels(model, [-1, -2, -5]).chosen).toBe('base');
  expect(chooseByLabels(model, [-6, -1, null]).chosen).toBe('cancels');
});

test('without a sum of the nucleus, the likeliest of it; without any label, base', () => {
  expect(chooseByLabels({ ...model, options: names }, [-6, -1, -3.1]).chosen).toBe('cancels');
  expect(chooseByLabels(model, [null, null, null])).toEqual({ chosen: 'base', probabilities: {} });
  expect(() => chooseByLabels({ ...model, prior: [] }, [-1, -1, -1])).toThrow('do not match');
});

test('a task needs the parts of the smallest option that solved it', () => {
  expect(neededParts(options, { base: [0], cancels: [0, 1], returns: [0], 'cancels+returns': [1] })).toEqual([
    'cancels',
    'returns',
  ]);
  expect(neededParts(options, { base: [0], cancels: [0], returns: [0], 'cancels+returns': [0] })).toBeUndefined();
});
