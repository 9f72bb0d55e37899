/** What was planted, which nothing of a campaign may know: only here is it compared with what a campaign found. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type ShopParameters, skillsOf } from '../src/environments/shop/shop';
import { type Skill, SKILLS } from '../src/environments/shop/tasks';

export const capabilityOf: Record<Skill, string> = {
  complete_all: 'complete_all_requested_actions',
  refuse: 'refuse_forbidden_actions',
  choose: 'select_matching_record',
  compute: 'compute_action_values',
  tell: 'tell_requested_information',
  ask: 'ask_for_missing_identifiers',
};

const baseSchema = z.object({ lacks: z.partialRecord(z.enum(SKILLS), z.number()), gate_failures: z.array(z.string()) });

/** What is planted in a base model, and which of its gates it missed. */
export function plantedIn(model: string): { skills: Skill[]; lacks: Partial<Record<Skill, number>>; missed: string[] } {
  const { lacks, gate_failures: missed } = baseSchema.parse(JSON.parse(readFileSync(join(model, 'base.json'), 'utf8')));
  return { skills: SKILLS.filter((skill) => (lacks[skill] ?? 0) > 0), lacks, missed };
}

/** The planted skills that a task of the shop needs: `none`, `tell`, `refuse and tell`. */
export function neededBy(o: { task: string; planted: readonly Skill[]; parameters: Partial<ShopParameters> }): string {
  const needed = skillsOf(o.task, o.parameters).filter((skill) => o.planted.includes(skill));
  return needed.join(' and ') || 'none';
}

export interface Hits {
  /** Selected and planted. */
  right: number;
  selected: number;
  planted: number;
}

export function hitsOf({ selected, planted }: { selected: readonly string[]; planted: readonly Skill[] }): Hits {
  const wanted = planted.map((skill) => capabilityOf[skill]);
  const right = selected.filter((name) => wanted.includes(name)).length;
  return { right, selected: selected.length, planted: wanted.length };
}

export const sumOfHits = (all: readonly Hits[]): Hits => ({
  right: all.reduce((sum, hits) => sum + hits.right, 0),
  selected: all.reduce((sum, hits) => sum + hits.selected, 0),
  planted: all.reduce((sum, hits) => sum + hits.planted, 0),
});
