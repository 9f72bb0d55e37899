/**
 * The pictures of docs/analysis.md and docs/synthesis.md, drawn from the artifacts of a finished campaign. Invariant: every mark is a number of
 * that campaign; nothing is smoothed or left out.
 *
 *   node -r ./test/support/register.cjs bench/pictures.ts HOME NAME CAPABILITY [--out docs/pictures]
 *
 * HOME is the campaign's home, with one campaign in it, NAME its folder there. CAPABILITY is the one whose calibration and training are drawn.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { LabelPass } from '../src/domain/capability';
import { type Report, reportSchema } from '../src/report/model';
import { isSuccess, rolloutSchema } from '../src/domain/rollout';
import { passStatistics } from '../src/domain/selection';
import { calibrationsOf } from '../src/report/adapters';
import { markup, type Markup, style } from '../src/report/markup';
import { drawPlot, LABELS, line, linear, rowLabel, type Scale, svg, text } from '../src/report/plots';
import { trainingPlot } from '../src/report/sections/run';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: 'docs/pictures' } },
});
const [home, campaign, name] = positionals;
if (home === undefined || campaign === undefined || name === undefined)
  throw new Error('pictures.ts HOME NAME CAPABILITY: name a finished campaign and one of its capabilities');

const objects = join(home, 'artifacts', 'objects');
const report = reportSchema.parse(JSON.parse(readFileSync(join(home, campaign, 'report.json'), 'utf8')));
const capability = report.capabilities?.find((one) => one.name === name);
if (!capability) throw new Error(`CAPABILITY: the report of ${campaign} has no ${name}`);

const width = { cell: 150, gap: 26 };
const [top, rowHeight] = [44, 46];
const cellAt = (column: number): number => LABELS + column * (width.cell + width.gap);
const scaleAt = (column: number): Scale =>
  linear({ domain: [0, 1], range: [cellAt(column), cellAt(column) + width.cell] });
const heading = (column: number, title: string, below: string): Markup =>
  markup`${text({ x: cellAt(column) + width.cell / 2, y: 16, anchor: 'middle' }, title)}${text({ x: cellAt(column) + width.cell / 2, y: 31, anchor: 'middle', class: 'tick' }, below)}`;
const dot = (o: { x: number; y: number; r: number; class: string }): Markup =>
  markup`<circle cx="${o.x}" cy="${o.y}" r="${o.r}" class="${o.class}"/>`;

/** By capability: of each pass, what it labeled among the failures, and where it stands against rho and delta. */
function labelsPicture({ selection }: Report): Markup {
  if (!selection) throw new Error(`${campaign} selected nothing`);
  const { rule } = selection;
  const passes = readdirSync(objects, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .filter((content) => content.startsWith('{"attempt":') && content.includes('"lacking_failed"'))
    .map((content) => JSON.parse(content) as LabelPass)
    .sort((a, b) => Number(a.attempt) - Number(b.attempt));
  const bottom = top + selection.candidates.length * rowHeight;
  const [rho, delta] = [scaleAt(1)(rule.rho), scaleAt(2)(rule.delta)];
  return svg(
    { width: cellAt(3) + 90, height: bottom + 24, label: 'Labels of every pass, and what selection makes of them' },
    heading(0, 'failures by label, a bar a pass', 'lacking, then present; the rest NA'),
    heading(1, `Cov, rho ${rule.rho}`, 'a dot a pass'),
    heading(2, `Delta, delta ${rule.delta}`, 'a dot a pass'),
    text({ x: cellAt(3), y: 16 }, 'votes'),
    text({ x: cellAt(3), y: 31, class: 'tick' }, `selected at ${rule.votes}`),
    markup`<rect x="${rho}" y="${top}" width="${cellAt(1) + width.cell - rho}" height="${bottom - top}" class="band"/>`,
    markup`<rect x="${delta}" y="${top}" width="${cellAt(2) + width.cell - delta}" height="${bottom - top}" class="band"/>`,
    [1, 2].flatMap((column) =>
      [0, 1].map((t) => text({ x: scaleAt(column)(t), y: bottom + 16, anchor: 'middle', class: 'tick' }, String(t))),
    ),
    selection.candidates.map((candidate, row) => {
      const [from, y] = [top + row * rowHeight, top + (row + 0.5) * rowHeight];
      const kind = candidate.selected ? 'adapter' : 'base open';
      const bar = width.cell / passes.length;
      const marks = passes.flatMap((pass, n) => {
        const labels = pass.labels[candidate.name];
        if (!labels) return [];
        const high = (count: number): number => (count / pass.totals.total_failed) * (rowHeight - 10);
        const [lacking, present] = [high(labels.lacking_failed.length), high(labels.present_failed.length)];
        const [x, base] = [cellAt(0) + n * bar, from + rowHeight - 5];
        const { coverage, delta: gap } = passStatistics({ labels, totals: pass.totals, rule });
        // Dots of the passes lie below each other, so that each is seen.
        const at = from + 7 + (n / Math.max(1, passes.length - 1)) * (rowHeight - 14);
        return [
          markup`<rect x="${x}" y="${from + 5}" width="${bar - 2}" height="${rowHeight - 10}" class="strip"/><rect x="${x}" y="${base - lacking}" width="${bar - 2}" height="${lacking}" class="routed"/><rect x="${x}" y="${base - lacking - present}" width="${bar - 2}" height="${present}" class="adapter"/>`,
          dot({ x: scaleAt(1)(coverage), y: at, r: 2.5, class: kind }),
          dot({ x: scaleAt(2)(Math.max(0, gap)), y: at, r: 2.5, class: kind }),
        ];
      });
      return markup`${line({ x: cellAt(0), y: from }, { x: cellAt(3) + 60, y: from }, 'grid')}${rowLabel({ y: y + 4, name: candidate.name })}${marks}${text({ x: cellAt(3), y: y + 4, class: candidate.selected ? 'strong' : 'quiet' }, `${candidate.votes} of ${candidate.passes}`)}`;
    }),
  );
}

const ACROSS = 420;

/** By round and branch: the successes of each group, and the mean that the bands are for. */
function calibrationPicture({ bands }: Report): Markup {
  if (!bands) throw new Error(`${campaign} calibrated nothing`);
  const rounds = (capability!.rounds ?? []).flatMap(calibrationsOf).map((round) => {
    const sha = round.successRate.from[0]!.sha256;
    const rollouts = readFileSync(join(objects, sha.slice(0, 2), sha), 'utf8')
      .trimEnd()
      .split('\n');
    const groups = new Map<string, { branch: string; successes: number[] }>();
    for (const one of rollouts.map((row) => rolloutSchema.parse(JSON.parse(row)))) {
      if (one.status !== 'scored') continue;
      const group = groups.get(one.task) ?? { branch: one.branch ?? 'all', successes: [] };
      group.successes.push(Number(isSuccess(one)));
      groups.set(one.task, group);
    }
    return { round, groups: [...groups.values()] };
  });
  const rows = rounds.flatMap(({ round, groups }) =>
    [...new Set(groups.map(({ branch }) => branch))]
      .sort()
      .map((branch) => ({ round, branch, groups: groups.filter((one) => one.branch === branch) })),
  );
  const wide = linear({ domain: [0, 1], range: [LABELS, LABELS + ACROSS] });
  const bottom = top + rows.length * rowHeight;
  const [low, high] = bands.successRate;
  return svg(
    { width: LABELS + ACROSS + 200, height: bottom + 42, label: `Calibration of ${name}: successes by group` },
    text({ x: LABELS, y: 16 }, 'success rate of each group of 16 rollouts, a dot a group; the bar is their mean'),
    text(
      { x: LABELS, y: 31, class: 'tick' },
      `the mean has to lie in ${low} to ${high}; where one branch is mastered, that of the other`,
    ),
    markup`<rect x="${wide(low)}" y="${top}" width="${wide(high) - wide(low)}" height="${bottom - top}" class="band"/>`,
    [0, 0.2, 0.4, 0.6, 0.8, 1].map((t) =>
      text({ x: wide(t), y: bottom + 16, anchor: 'middle', class: 'tick' }, String(t)),
    ),
    rows.map(({ round, branch, groups }, row) => {
      const [from, y] = [top + row * rowHeight, top + (row + 0.5) * rowHeight];
      const rates = groups.map(({ successes }) => successes.reduce((a, b) => a + b, 0) / successes.length);
      const mean = rates.reduce((a, b) => a + b, 0) / rates.length;
      const seen = new Map<number, number>();
      const dots = rates.map((rate) => {
        const above = seen.get(rate) ?? 0;
        seen.set(rate, above + 1);
        return dot({
          x: wide(rate),
          y: from + rowHeight - 8 - 5 * above,
          r: 2.5,
          class: round.accepted ? 'adapter' : 'base open',
        });
      });
      const isFirst = rows.findIndex((one) => one.round === round) === row;
      const label = [`round ${round.round}`, round.hints !== undefined && 'hints', branch].filter(Boolean).join(', ');
      return markup`${line({ x: LABELS, y: from + rowHeight - 3 }, { x: LABELS + ACROSS, y: from + rowHeight - 3 }, 'grid')}${line({ x: wide(mean), y: from + 6 }, { x: wide(mean), y: from + rowHeight - 4 }, 'base')}${rowLabel({ y: y + 4, name: label })}${dots}${isFirst ? text({ x: LABELS + ACROSS + 16, y: y + 4, class: round.accepted ? 'strong' : 'quiet' }, round.accepted ? 'accepted' : `refused: ${round.verdict.replaceAll('_', ' ')}`) : ''}`;
    }),
  );
}

/** A file by itself: the page's style, and its paper. */
function write(file: string, picture: Markup): void {
  const opened = picture.text.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ');
  const font = 'svg { font-family:system-ui,"DejaVu Sans",sans-serif; background:var(--paper) }';
  const whole = opened.replace('>', `><style>${style.replace(/@media print.*\n/, '')}${font}</style>`);
  writeFileSync(join(values.out, file), `${whole}\n`);
}

mkdirSync(values.out, { recursive: true });
write('labels.svg', labelsPicture(report));
write('calibration.svg', calibrationPicture(report));
const { training } = capability;
if (training) write('training.svg', drawPlot(trainingPlot(name, training, training.iterations.at(-1)?.step ?? 1)));
