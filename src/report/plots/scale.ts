/** Scales and axes. Invariant: a finite value gives a finite coordinate, also for an empty or one-point domain. */
import type { Role } from '../model';
import { shortName } from '../format';
import { markup, type Markup } from '../markup';

export type Scale = (value: number) => number;

/** A linear map of [low, high] onto [from, to]; values outside are clamped, a domain without width maps to the middle. */
export const linear = ({
  domain: [low, high],
  range: [from, to],
}: {
  domain: [number, number];
  range: [number, number];
}): Scale => {
  const width = high - low;
  if (!(width > 0)) return () => (from + to) / 2;
  return (value) => from + ((Math.min(high, Math.max(low, value)) - low) / width) * (to - from);
};

/** Round values in [low, high], about `about` of them; always at least one. */
export const ticks = ({ low, high, about }: { low: number; high: number; about: number }): number[] => {
  const width = high - low;
  if (!(width > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(width / about));
  const step = ([1, 2, 5, 10].find((s) => width / (s * power) <= about) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const found = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return found.length > 0 ? found : [low];
};

/** Moves labels apart along one axis: each at least `gap` from the one before, in the order of their wishes; kept under `max` if they fit. */
export const spread = ({ wishes, gap, max }: { wishes: readonly number[]; gap: number; max: number }): number[] => {
  const order = wishes.map((wish, i) => ({ wish, i })).sort((a, b) => a.wish - b.wish || a.i - b.i);
  const placed: number[] = new Array<number>(wishes.length).fill(0);
  let last = -Infinity;
  for (const { wish, i } of order) last = placed[i] = Math.max(wish, last + gap);
  let limit = max;
  for (const { i } of order.reverse()) {
    limit = placed[i] = Math.min(placed[i] ?? 0, limit);
    limit -= gap;
  }
  return placed;
};

export const text = (
  at: { x: number; y: number; anchor?: 'start' | 'middle' | 'end'; class?: string },
  content: string,
): Markup =>
  markup`<text x="${at.x}" y="${at.y}" text-anchor="${at.anchor ?? 'start'}" class="${at.class ?? ''}">${content}</text>`;

/** Room for row labels, left of every plot with rows. */
export const LABELS = 258;
const LONGEST_LABEL = 31;

/** A row's name, right-aligned before the plot; a long one is cut, the mark's title has it whole. */
export const rowLabel = ({ y, name, strong }: { y: number; name: string; strong?: boolean }): Markup =>
  text({ x: LABELS - 12, y, anchor: 'end', class: strong ? 'strong' : '' }, shortName(name, LONGEST_LABEL));

export const line = (from: { x: number; y: number }, to: { x: number; y: number }, style: string): Markup =>
  markup`<line x1="${from.x}" y1="${from.y}" x2="${to.x}" y2="${to.y}" class="${style}"/>`;

/** An arm at its test success: a dot, a diamond for the bound. */
export const armMark = ({ role, x, y }: { role: Role; x: number; y: number }): Markup =>
  role === 'bound'
    ? markup`<path d="M${x} ${y - 6}l6 6l-6 6l-6 -6z" class="mark ${role}"/>`
    : markup`<circle cx="${x}" cy="${y}" r="5" class="mark ${role}"/>`;

/** The svg element of a plot; `label` is what a screen reader says. */
export const svg = (
  size: { width: number; height: number; label: string },
  ...content: (Markup | Markup[])[]
): Markup =>
  markup`<svg viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img" aria-label="${size.label}">${content}</svg>`;
