import { demonstrations } from '../../../examples/shop/target/demonstrations';

interface Line {
  messages: { role: string; content: string; toolCalls?: unknown[] }[];
  skills: string[];
  mistakes: string[];
  reward: number;
}
const collect = async (o: Parameters<typeof demonstrations>[0]): Promise<[unknown, ...Line[]]> => {
  const lines: unknown[] = [];
  for await (const line of demonstrations(o)) lines.push(line);
  return lines as [unknown, ...Line[]];
};

test('mistakes are made at about the asked rate, only where the skill is carried, and cost the reward', async () => {
  const [head, ...lines] = await collect({ count: 2000, seed: 3, lacks: { refuse: 0.75, tell: 1 } });
  expect(head).toMatchObject({ environment: { name: 'shop' } });
  expect(lines).toHaveLength(2000);
  for (const line of lines) {
    expect(line.reward).toBe(line.mistakes.length === 0 ? 1 : 0);
    expect(line.mistakes.every((m) => line.skills.includes(m))).toBe(true);
    expect(line.mistakes.includes('tell')).toBe(line.skills.includes('tell'));
  }
  const carried = lines.filter((l) => l.skills.includes('refuse'));
  const rate = carried.filter((l) => l.mistakes.includes('refuse')).length / carried.length;
  expect(rate).toBeGreaterThan(0.68);
  expect(rate).toBeLessThan(0.82);
});

test('the same seed writes the same bytes, another seed does not', async () => {
  const write = async (seed: number): Promise<string> =>
    JSON.stringify(await collect({ count: 50, seed, lacks: { choose: 0.5 } }));
  expect(await write(1)).toBe(await write(1));
  expect(await write(1)).not.toBe(await write(2));
});
