/**
 * The results page: the template's hand-written text around what was measured. Invariant: a part of the template stands in the page only if
 * its study has run; a name that no study gives is an error.
 */
import type { Section } from './study';

const PART = /<!-- if (\w+) -->\n([\s\S]*?)<!-- end -->\n/g;
const NAME = /\{\{(\w+)\.(\w+)\}\}/g;

export function pageOf(o: { template: string; sections: ReadonlyMap<string, Section> }): string {
  const kept = o.template.replace(PART, (_, study: string, text: string) => (o.sections.has(study) ? text : ''));
  return kept.replace(NAME, (_, study: string, name: string) => {
    const text = o.sections.get(study)?.texts[name];
    if (text === undefined) throw new Error(`science/template.md: {{${study}.${name}}} is nothing that a study gives`);
    return text;
  });
}
