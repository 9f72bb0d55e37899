/** The base model as classifier: the option that its labels choose. */
import { chooseByLabels, type LabelsModel } from '../../../src/routing/label-tokens';

const names = ['base', 'cancels', 'returns'];
const options = [...names, 'cancels+returns'];
const model: LabelsModel = {
  ...{ form: 'labels', options, names, definitions: {}, examples: [] },
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
