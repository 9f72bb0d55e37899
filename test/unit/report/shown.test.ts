/** How a page and a terminal show what a language model found, wrote and cost; nothing in its texts does anything there. */
import type { ReportDraft } from '../../../src/report/model';
import { diffOf } from '../../../src/report/build/quotes';
import { markup } from '../../../src/report/page/blocks';
import { completeReport, renderReport } from '../../../src/report/render';
import { terminalTable } from '../../../src/report/page/table';
import { visible } from '../../../src/report/format';
import { foundFixture } from '../../support/found-fixture';
import { reportFixture } from '../../support/report-fixture';

const pageOf = (report: ReportDraft): string => renderReport({ report }).html;
const tableOf = (draft: ReportDraft, columns?: number): string[] =>
  terminalTable(completeReport(draft), columns).split('\n');

describe('page', () => {
  const html = pageOf(foundFixture());

  test('shows cited steps with their trajectory, what is to be seen, and the messages around', () => {
    expect(html).toMatch(
      /<details class="seen" open><summary><b>complete_all_requested_actions<\/b> <span class="quiet">2 cited steps, 2 LACKING/,
    );
    expect(html).toMatch(
      /task train-31, attempt 0, <span>passed<\/span>, message 4: <span class="text">It goes through both/,
    );
    expect(html).toMatch(
      /<div class="who">4 agent<\/div><div class="cited"><span class="text">I have cancelled both\.\ncalls cancel_item/,
    );
    expect(html).toContain('LACKING in 7 of 10 passes, 4 cite the message');
    expect(html).toContain('12,000 more characters are in the artifact');
    expect(html).toContain('not among the labeled rollouts');
  });

  test('a long text is cut, and the whole is behind it', () => {
    const long = 'One call, two requests. '.repeat(20);
    expect(html).toContain(
      `<span class="cut">${long.slice(0, 300)}… </span><span class="quiet">all ${long.length} characters</span></summary>${long}</details>`,
    );
  });

  test('shows agreement with n, faults in a section of their own, what was decided', () => {
    expect(html).toContain('<th>agreement</th>');
    expect(html).toMatch(/<b>0\.86<\/b>[\s\S]{0,200}n 340/);
    expect(html).toMatch(
      /<h2>Faults of the environment or the simulated user<\/h2>[\s\S]*<b>9<\/b>[\s\S]*environment in 9 of 10 passes: /,
    );
    expect(html).toContain('The selected ones were approved with edits.');
  });

  test('shows every version with its reason, what changed, what was found; an episode', () => {
    expect(html).toContain('Round 2: 122 lines, +2 −2');
    expect(html).toContain(
      '<span class="removed">-  return draw(seed, 4);</span>\n<span class="added">+  return draw(seed, 3);</span>',
    );
    expect(html).toContain('7 more lines are in the artifacts');
    expect(html).toContain('accepted with hints on 50% of the rollouts, rejected: too narrow');
    expect(html).toContain(
      'Sample episode: seed-0, failed <span class="quiet">reward 0.1, shown the hint, ended by user stop; <code>eeeeeeee</code></span>',
    );
  });

  test('a calibration with hints stands beside the one without, and a training with hints says so', () => {
    const draft = foundFixture();
    const { rounds, calibration } = draft.capabilities![3]!;
    expect(calibration).toMatchObject({ round: 3, hints: 0.5 });
    expect(rounds![2]!.calibration!.hints).toBeUndefined();
    expect(html).toContain('<div class="quiet">with hints on 50% of the rollouts</div>');
    Object.assign(draft.capabilities![0]!.training!, { hints: 0.25 });
    const page = pageOf(draft);
    expect(page).toContain('<h3>complete_all_requested_actions, with hints on 25% of the rollouts</h3>');
    expect(page).toContain('the lines count these rollouts, too');
    expect(html).not.toContain('the lines count these rollouts, too');
  });

  test('shows what language models cost by step, against the budget', () => {
    expect(html).toContain(
      '38 requests, 1,637,800 tokens of 5,000,000 (32.8%), $4.52 of $10.00 (45.2%), 5 of 38 requests without a price',
    );
    expect(html).toMatch(
      /<td>analyst<\/td><td>labels<\/td><td>30<\/td><td>1,230,000<\/td><td>900,000<\/td><td>63,000<\/td><td class="wrap">\$4\.10<\/td>/,
    );
  });

  test('nothing of it is there where an analyst gives nothing', () => {
    const bare = pageOf(reportFixture());
    for (const words of ['What was seen', 'Faults of', '<th>agreement', 'Language models', 'Sample episode: '])
      expect(bare).not.toContain(words);
  });

  // Each is put into every text that a model, a module, a conversation or a person wrote.
  const written = (draft: ReportDraft, attack: string): ReportDraft => {
    const { selection, capabilities, cost } = draft;
    const fields = new Set([
      'says',
      'text',
      'what',
      'reason',
      'rationale',
      'task',
      'decision',
      'step',
      'definition',
      'rollout',
      'capability',
    ]);
    const poison = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [key, item] of Object.entries(value)) {
        if (typeof item === 'string' && fields.has(key)) (value as Record<string, unknown>)[key] = attack + item;
        else if (
          Array.isArray(item) &&
          (key === 'findings' || key === 'reasons' || (key === 'lines' && typeof item[0] === 'string'))
        )
          (value as Record<string, unknown>)[key] = item.map((line) => `+${attack}${line}`);
        else poison(item);
      }
    };
    for (const part of [selection, capabilities, cost!.languageModel]) poison(part);
    return draft;
  };

  test('no text adds an element, an attribute or a script', () => {
    const attack = `"><img src=x onerror=alert(1)>'<script>alert(1)</script></details></pre>&`;
    const page = pageOf(written(foundFixture(), attack));
    expect(page.match(/alert\(1\)&gt;/g)!.length).toBeGreaterThan(40);
    expect(page).not.toMatch(/<(script|img)/);
    const elements = (of: string): string[] => of.match(/<\/?[a-z][a-z0-9]*/g) ?? [];
    expect(new Set(elements(page))).toEqual(new Set(elements(html)));
    // Every element that is opened is closed where it was.
    const count = (of: string, tag: RegExp): number => (of.match(tag) ?? []).length;
    for (const name of ['details', 'pre', 'div', 'span'])
      expect(count(page, new RegExp(`<${name}[ >]`, 'g'))).toBe(count(page, new RegExp(`</${name}>`, 'g')));
  });

  test('what turns the direction of writing or is not seen is spelled out', () => {
    const page = pageOf(written(foundFixture(), '\u202eevil\u2066 \u200b\u0007'));
    for (const unseen of ['\u202e', '\u2066', '\u200b', '\u0007']) expect(page).not.toContain(unseen);
    expect(page).toContain('\\u{202e}evil\\u{2066} \\u{200b}\\u{7}');
    expect(markup`${'a\tb\r\nc'}`.text).toBe('a\tb\nc');
  });
});

describe('terminal', () => {
  test('agreement, hints, faults, decisions and costs are said', () => {
    const lines = tableOf(foundFixture());
    expect(lines.find((line) => line.startsWith('capability '))).toMatch(/Delta +alpha +status/);
    expect(lines.find((line) => /^complete_all.* trained/.test(line))).toMatch(/ 0\.86 +trained/);
    expect(lines).toEqual(
      expect.arrayContaining([
        'the selected ones were approved with edits',
        '9 of 214 failed trajectories are put down to the environment, 3 to the simulated user',
        'compute_required_values: accepted with hints on 50% of the rollouts',
      ]),
    );
    expect(lines.slice(-2)).toEqual([
      'language models: 38 requests, 1,637,800 tokens of 5,000,000 (32.8%), $4.52 of $10.00 (45.2%), 5 of',
      '  38 requests without a price: analyst $4.52, synthesizer 215,500 tokens',
    ]);
    expect(tableOf(reportFixture()).join('\n')).not.toMatch(/alpha|language models|put down to/);
  });

  test.each([40, 60, 80, 99, 200])('no line is wider than %d columns, and success stays', (columns) => {
    const lines = tableOf(foundFixture(), columns);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.min(columns, 99));
    expect(lines.find((line) => line.startsWith('trace '))).toContain('75.5%');
    expect(lines.some((line) => /^complete_all.* trained/.test(line))).toBe(true);
  });

  test('no text moves the cursor', () => {
    const draft = foundFixture();
    draft.selection!.decision = 'rejected:\u001b[2J\u001b]0;title\u0007 no';
    draft.capabilities![3]!.reason = 'line\u001b[1A\rback\u009b31m';
    draft.capabilities![3]!.name = 'name\u001b[31m';
    // eslint-disable-next-line no-control-regex -- it is what is looked for
    expect(tableOf(draft).join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    expect(tableOf(draft).join('\n')).toContain('rejected:\\u{1b}[2J');
  });
});

describe('changes of a module', () => {
  test('as of diff -u, counted', () => {
    expect(diffOf({ before: 'a\nb\n', after: 'a\nc\nd\n' })).toEqual({
      added: 2,
      removed: 1,
      lines: ['@@ -1,2 +1,3 @@', ' a', '-b', '+c', '+d'],
    });
    expect(diffOf({ before: 'a\n', after: 'a\n' })).toEqual({ added: 0, removed: 0, lines: [] });
  });

  test('long lines are cut, what is not seen is spelled out, and what has nothing in common is not compared', () => {
    const { lines } = diffOf({ before: '', after: `${'x'.repeat(5000)}\n// \u202e\n` })!;
    expect(lines[1]).toBe(`+${'x'.repeat(999)}… (4001 more characters)`);
    expect(lines[2]).toBe('+// \\u{202e}');
    const text = (word: string) => Array.from({ length: 3000 }, (_, i) => `${word} ${i}\n`).join('');
    expect(diffOf({ before: text('a'), after: text('b') })).toBeUndefined();
  });
});

test('what is visible stays as it is', () => {
  const text = 'Größe 3 × 4, "quoted"\n\t日本 🙂';
  expect(visible(text)).toBe(text);
  expect(visible('\ud800')).toBe('\\u{d800}');
});
