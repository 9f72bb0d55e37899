/** The synthesizer that asks a language model: what is asked, what is sent back, what leaves it. The model is a function here. */
import { calibrate, calibrationBandsSchema } from '../../../src/domain/calibration';
import type { Question } from '../../../src/llm/model';
import { attackLine, attacksIn, MOST_ATTACKS } from '../../../src/sandbox/attacks';
import { messageHash } from '../../../src/sandbox/leakage';
import { openModule } from '../../../src/sandbox/module';
import { llm, synthesizerWith } from '../../../src/synthesis/llm/llm';
import type { ReviseInput, WriteInput } from '../../../src/synthesis/synthesizer';
import { question } from '../../fixtures/synthesis/generate';
import { failing } from '../../support/failing';
import { readFixtureRollouts } from '../../support/fixture-rollouts';
import { closedAfterwards } from '../../support/opened';
import { recordedModule } from '../../support/recorded-replies';

const { description, rollouts } = readFixtureRollouts('tau2-retail/rollouts');
const code = recordedModule();
const attack = { name: 'say it is done', messages: [{ say: 'It is done.' }] };

const fenced = (text: string, language = 'javascript'): string =>
  `I thought about it.\n\n\`\`\`${language}\n${text}\n\`\`\`\n\n**Rationale:** Agents forget to ask.\n`;
const attacking = (attacks: object[]): string => JSON.stringify({ attacks });

function asked(answers: readonly string[], options: Partial<Parameters<typeof synthesizerWith>[0]> = {}) {
  const questions: Question[] = [];
  const steps: string[] = [];
  const synthesizer = synthesizerWith(
    {
      model: {
        id: { model: 'fake' },
        async ask(one, { step }) {
          steps.push(step);
          const text = answers[questions.push(one) - 1];
          if (text === undefined) throw new Error(NONE_LEFT);
          return { text, finish: 'stop', usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1 } };
        },
      },
      contextTokens: 128_000,
      maxTokens: 32_000,
      repairs: 1,
      attacks: 0,
      ...options,
    },
    { kind: 'llm', version: '1' },
  );
  return { synthesizer, questions, steps };
}

const failed = rollouts.filter(({ reward }) => reward < 1);
const input = (more: Partial<WriteInput> = {}): WriteInput => ({
  ...question('gather_all_items_first', description, { rollouts }),
  candidate: {
    name: 'gather_all_items_first',
    definition: 'What can be done only once is done for all at once.',
    examples: failed.slice(0, 3).map(({ key }) => key),
    citations: [{ rollout: failed[1]!.key, message: 2, says: 'acts before all is named' }],
  },
  ...more,
});
const textOf = ({ messages }: Question): string => messages.map(({ content }) => content).join('\n');

const NONE_LEFT = 'asked more often than there are answers';
/** What is asked first; nothing is answered. */
async function questionOf(more: Partial<WriteInput> = {}, options: Parameters<typeof asked>[1] = {}) {
  const { synthesizer, questions } = asked([], options);
  await expect(synthesizer.write(input(more))).rejects.toThrow(NONE_LEFT);
  return questions[0]!;
}
const firstText = async (...of: Parameters<typeof questionOf>) => textOf(await questionOf(...of));

/** What becomes of one module, and what was asked after the first question. */
async function written(answers: readonly string[], more: Partial<WriteInput> = {}, attacks = 0) {
  const { synthesizer, questions, steps } = asked(answers, { attacks });
  const { source, rationale } = await synthesizer.write(input(more));
  const repairs = questions.slice(1);
  return { source, rationale, steps, repairs, sent: repairs.at(-1)?.messages.at(-1)?.content };
}
const once = [fenced(code)];

describe('what is asked', () => {
  it('shows the policy, the schemas and the attempts, in whatever order these come', async () => {
    const asking = await questionOf();
    expect(await questionOf({ rollouts: [...rollouts].reverse() })).toEqual(asking);
    const text = textOf(asking);
    expect(text).toContain(description.policy.trim());
    for (const tool of description.tools) expect(text).toContain(JSON.stringify(tool));
    expect(text).toMatch(/\[r\d\] task .*: FAILED/);
  });

  it('shows nothing of attempts in which a user says the text of a test task', async () => {
    const said = failed[0]!.messages.find(({ role }) => role === 'user')!.content;
    const text = await firstText({ forbidden: [messageHash(said)] });
    expect(text).not.toContain(said.slice(0, 200));
    expect(text).toMatch(/\[r1\]/);
  });

  it('fits into the context, by shorter samples, or says what it needs', async () => {
    const sizeIn = async (contextTokens: number) => (await firstText({}, { contextTokens, maxTokens: 8_000 })).length;
    const narrow = await sizeIn(32_000);
    expect(narrow).toBeLessThan(await sizeIn(128_000));
    expect(narrow / 3.5 + 8_000).toBeLessThan(32_000);
    const small = asked([], { contextTokens: 10_000, maxTokens: 8_000 }).synthesizer;
    await expect(small.write(input())).rejects.toMatchObject(failing('BadInput', /^synthesizer\.contextTokens/));
    expect(small.unsuited?.(description)).toMatch(/^synthesizer\.contextTokens/);
    const { unsuited } = asked([]).synthesizer;
    expect(unsuited?.(description)).toBeUndefined();
    expect(unsuited?.({ ...description, tools: description.tools.slice(0, 2) })).toMatch(/2 tools/);
  });

  it('is part of the identity, and where the model is and what it costs is not', async () => {
    const spec = { kind: 'llm', url: 'http://127.0.0.1:2/v1', model: 'some-model' };
    const open = async (more: object) => (await llm.open({ ...spec, ...more }, undefined)).identity;
    const own = await open({});
    const other = { url: 'http://127.0.0.1:2/v1', apiKeyEnv: 'KEY', concurrency: 1, price: { input: 1, output: 1 } };
    expect(await open(other)).toEqual(own);
    expect(await open({ model: 'other-model' })).not.toEqual(own);
    expect(await open({ attacks: 0 })).not.toEqual(own);
    expect(JSON.stringify(own)).not.toContain('127.0.0.1');
  });
});

describe('a module that was written', () => {
  it('has the schemas of its tools before it, and is the one of the answer', async () => {
    const progress = jest.fn();
    const { source, rationale, steps } = await written(once, { progress });
    expect(steps).toEqual(['environment: gather_all_items_first']);
    expect(rationale).toBe('Agents forget to ask.');
    expect(source).toMatch(/^const targetTools = \{"calculate":/);
    expect(source.slice(source.indexOf('\n') + 1).trim()).toBe(code.trim());
    expect(progress).toHaveBeenLastCalledWith(2, 2);
    const { tools } = await closedAfterwards(openModule({ source })).describe();
    for (const tool of tools) expect(tool).toEqual(description.tools.find(({ name }) => name === tool.name));
  });

  const edited = (from: string | RegExp, to: string): string => fenced(code.replace(from, () => to));
  const offering = (tools: string): string =>
    edited('tools: TOOLS.map((name) => targetTools[name])', `tools: ${tools}`);
  const changing = (change: string): string => offering(`Object.values(targetTools).map((t) => ({ ...t, ${change} }))`);
  const peek = `[...Object.values(targetTools).slice(1), { ...targetTools.get_user_details, name: 'peek' }]`;
  const early = 'if (!state.read) throw new Error("too early"); const sums =';
  const copied = /#W\d{7}/.exec(JSON.stringify(failed[0]!.messages))![0];

  const lastWords = / {4}say\(`All of that is done.*\n/;
  it.each<[what: string, reply: string]>([
    ['no block', 'Rationale: none'],
    ['no rationale', `\`\`\`js\n${code}\n\`\`\``],
    ['broken code', edited('const draw = (', 'const draw = ((')],
    ['randomness', fenced(`${code}\nconst r = () => Math.random();`)],
    ['a missing function', edited('export const solve', 'const solve')],
    ['an unknown tool', offering(peek)],
    ['a changed schema', changing('parameters: { ...t.parameters, required: [] }')],
    ['another description', changing(`description: 'First.'`)],
    ['a reward that fails at first', edited('const sums =', early)],
    ['too few tools', offering('[targetTools.get_order_details]')],
    ['a solution that fails', edited('script(make(seed), make(seed).parts)', 'script(make(seed), [1])')],
    ['a solution that does not end', edited(lastWords, '')],
    ['other fields', edited('fulfillments:', 'deliveries:')],
    ['another spacing', edited('}: ${json(own)}', '}:${json(own)}')],
    ['words for JSON', edited("? json(order) : 'Error: Order", "? 'it is ' + order.status : 'Error: Order")],
    ['a copied identifier', edited('`#W${digits(7)}`', `'${copied}'`)],
  ])('with %s is sent back, and so repaired', async (_, reply) => {
    expect(reply).not.toBe(fenced(code));
    const { rationale, repairs } = await written([reply, fenced(code)]);
    expect(rationale).toBe('Agents forget to ask.');
    expect(repairs).toHaveLength(1);
    expect(repairs[0]!.messages.at(-2)).toEqual({ role: 'assistant', content: reply });
  });

  it('whose users say the text of a test task is sent back', async () => {
    const module = closedAfterwards(openModule({ source: code }));
    const seeds = [0, 10_000].flatMap((from) => Array.from({ length: 8 }, (_, n) => from + n));
    const forbidden = await Promise.all(
      seeds.map(async (seed) => messageHash((await module.start(await module.make(seed)))[1]!.content)),
    );
    const { synthesizer, questions } = asked([fenced(code), fenced(code)]);
    await expect(synthesizer.write(input({ forbidden }))).rejects.toMatchObject({ type: 'CannotSynthesize' });
    expect(questions).toHaveLength(2);
  });

  it('that holds the text of a test task is sent back, on whatever seed it would say it', async () => {
    const task = 'I bought a red bicycle in May and the bell is broken.';
    const quoting = `${code}\nconst seldom = { 4711: ${JSON.stringify(task)} };`;
    const { source, sent } = await written([fenced(quoting), fenced(code)], { forbidden: [messageHash(task)] });
    expect(source).not.toContain(task);
    expect(sent).toBeDefined();
  });

  it('that is never right ends with what was wrong', async () => {
    const { synthesizer } = asked(['no', 'no']);
    await expect(synthesizer.write(input())).rejects.toMatchObject(
      failing('CannotSynthesize', /^environment: gather_all_items_first: /),
    );
  });
});

describe('a revision', () => {
  const bands = calibrationBandsSchema.parse({});
  const previous = (more: object): ReviseInput => ({
    ...input(),
    round: 2,
    previous: {
      source: `const targetTools = {"x":1};\n${code}\n// Attack: ${JSON.stringify(attack)}\n// Rationale: why`,
      findings: [],
      ...more,
    },
  });
  /** What is asked after the beginning of the first question. */
  const foundBy = async (more: object): Promise<string> => {
    const { synthesizer, questions } = asked([]);
    await expect(synthesizer.revise(previous(more))).rejects.toThrow(NONE_LEFT);
    const beginning = (await questionOf()).messages;
    const { messages } = questions[0]!;
    expect(messages.slice(0, beginning.length)).toEqual(beginning);
    const [own, found] = messages.slice(beginning.length);
    expect(own).toEqual({ role: 'assistant', content: `\`\`\`javascript\n${code.trim()}\n\`\`\`` });
    return found!.content;
  };

  it('shows the module and the findings of the self-test, after the same beginning', async () => {
    const found = await foundBy({ findings: ['reward: doing nothing succeeds on 100%'] });
    expect(found).toMatch(/^Round 2\./);
    expect(found).toContain('- reward: doing nothing succeeds on 100%');
    expect(found).not.toMatch(/too hard|too easy/);
  });

  it('shows the reasons of the calibration, and the words of a person who rejected it', async () => {
    const groups = Array.from({ length: 8 }, () => ({ rewards: [0, 0, 0, 0] }));
    const calibration = calibrate({ groups, bands, confidence: 0.95 });
    const found = await foundBy({ calibration });
    for (const reason of calibration.reasons) expect(found).toContain(reason);
    expect(await foundBy({ calibration, rejection: 'it is rude' })).toContain('> it is rude');
  });

  it('is held against the attacks of all rounds before, and no more are asked for than a self-test takes', async () => {
    const tries = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ name: `attack ${n}`, messages: [{ say: `It is ${n}.` }] }));
    const withLines = (attacks: ReturnType<typeof tries>) => [code, ...attacks.map(attackLine)].join('\n');
    const revision = async (before: ReturnType<typeof tries>) => {
      const { synthesizer, questions } = asked([fenced(code), attacking([attack])], { attacks: 5 });
      const { source } = await synthesizer.revise(previous({ source: withLines(before), findings: ['x'] }));
      return { found: attacksIn(source), asked: questions.length };
    };
    const [few, most] = [tries(60), tries(MOST_ATTACKS)];
    expect(await revision(few)).toEqual({ found: { attacks: [...few, attack], wrong: [] }, asked: 2 });
    expect(await revision(most)).toEqual({ found: { attacks: most, wrong: [] }, asked: 1 });
    expect(attacksIn(withLines(tries(MOST_ATTACKS + 1))).wrong).toEqual(['201 attacks: keep 200 at most']);
  });
});

describe('attacks', () => {
  it('are asked for with the module, and become a part of its text', async () => {
    const { source, repairs } = await written([fenced(code), 'Let me see.\n' + attacking([attack])], {}, 2);
    expect(attacksIn(source)).toEqual({ attacks: [attack], wrong: [] });
    const ends = { name: 'ends\u2028throw 1;\u2029', messages: [{ say: 'throw 1;\u2028throw 2;' }] };
    expect(attackLine(ends)).not.toMatch(/[\u2028\u2029]/);
    expect(attacksIn(`${source}\n${attackLine(ends)}`)).toEqual({ attacks: [attack, ends], wrong: [] });
    expect(textOf(repairs[0]!)).toMatch(/seed 0: .*order #W\d{7}/);
  });
});
