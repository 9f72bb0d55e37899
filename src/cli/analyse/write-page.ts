/** analysis.html, made anew from analysis.json, the labels and what people labeled. */
import { replaceFile } from '../../artifacts/durable-file';
import { compare } from './compare';
import { keptLabels } from './human-labels';
import { analysisHtml } from './page';
import { passesOf, readAnalysis } from './passes-of';
import type { Place } from './places';

export async function writePage(place: Place): Promise<void> {
  const analysis = readAnalysis(place);
  const labels = keptLabels(place);
  const comparison = labels && analysis.passes > 0 ? compare({ labels, passes: await ownPasses(place) }) : undefined;
  const body = analysisHtml({ analysis, comparison });
  await replaceFile({ path: place.html, body, aside: place.aside });
}

const ownPasses = async ({ root, name }: Place) => (await passesOf({ home: { root }, name })).passes;
