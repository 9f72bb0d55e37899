/** Keeps what a workflow came to as an artifact. Invariant: no payload grows with it, it goes to the store in pieces. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import { control } from './steps';

/** As a payload each takes 120 KB at most, where every character is one of three bytes; mostly 35 KB. */
const PIECE = /.{1,30000}/gsu;

export async function keep(campaign: Campaign, what: string, result: object): Promise<ArtifactRef> {
  const { keepPiece, keepResult } = control(campaign, `keep ${what}`);
  const texts = JSON.stringify(result).match(PIECE) ?? [];
  return keepResult({ pieces: await Promise.all(texts.map((text) => keepPiece({ text }))) });
}
