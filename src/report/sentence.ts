/** A sentence of the verdict. Invariant: it names the figures or artifacts that it rests on. */
import type { Figure } from '../domain/figure';
import type { VerdictSentence } from '../domain/report';
import { shortPercent, spreadText } from './format';

export const say = (text: string, ...behind: (Figure | string | undefined)[]): VerdictSentence => ({
  text,
  behind: behind.flatMap((b) => (b === undefined ? [] : [typeof b === 'string' ? b : b.id])),
});

export const level = (figure: Figure): string =>
  figure.interval === undefined
    ? 'no interval'
    : `${shortPercent(figure.interval.level)} interval ${spreadText(figure)}`;
