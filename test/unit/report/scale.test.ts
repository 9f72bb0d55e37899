import fc from 'fast-check';
import { markup } from '../../../src/report/page/blocks';
import { linear, spread, ticks } from '../../../src/report/page/plots';

const value = fc.double({ min: -1e6, max: 1e6, noNaN: true });

test('a scale stays inside its range, also for a domain without width', () => {
  fc.assert(
    fc.property(value, value, value, (a, b, v) => {
      const at = linear({ domain: [a, b], range: [10, 90] })(v);
      expect(at).toBeGreaterThanOrEqual(10);
      expect(at).toBeLessThanOrEqual(90);
    }),
  );
  expect(linear({ domain: [0.5, 0.5], range: [0, 100] })(0.5)).toBe(50);
});

test('ticks are few, finite and inside', () => {
  fc.assert(
    fc.property(value, fc.double({ min: 1e-3, max: 1e6, noNaN: true }), (low, width) => {
      const found = ticks({ low, high: low + width, about: 6 });
      expect(found.length).toBeGreaterThanOrEqual(1);
      expect(found.length).toBeLessThanOrEqual(8);
      for (const tick of found) expect(Number.isFinite(tick)).toBe(true);
    }),
  );
  expect(ticks({ low: 0, high: 0.6, about: 6 })).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
  expect(ticks({ low: 3, high: 3, about: 6 })).toEqual([3]);
});

test('labels that would overlap are moved apart, within the plot where they fit', () => {
  const placed = spread({ wishes: [100, 101, 102, 20], gap: 17, max: 110 });
  const sorted = [...placed].sort((a, b) => a - b);
  expect(sorted[0]).toBe(20);
  for (let i = 1; i < sorted.length; i++) expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThanOrEqual(17);
  expect(Math.max(...placed)).toBeLessThanOrEqual(110);
  expect(placed[0]).toBeLessThan(placed[1]!);
});

test('markup escapes text, keeps markup, and refuses numbers that are not finite', () => {
  expect(markup`<b title="${'"<&>\''}">${markup`<i>${['a', 1.23456]}</i>`}${undefined}${false}</b>`.text).toBe(
    '<b title="&quot;&lt;&amp;&gt;&#39;"><i>a1.23</i></b>',
  );
  expect(() => markup`${NaN}`).toThrow(/finite/);
});
