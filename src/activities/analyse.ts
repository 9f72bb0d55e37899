/** Step 1 of the method: discover candidates, label them N times, select. */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { discover, label } from '../analyst';
import type { Candidate, LabelPass } from '../domain/capability';
import type { Message } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import { selectCapabilities } from '../domain/selection';
import { readRollouts } from '../rollout/read';
import { putJson, readJson, type Dependencies } from './context';
import { leaked, taskText, testTexts } from './leakage';
import type { ControlActivities } from './types';

export function createAnalysis({
  store,
  environments,
}: Dependencies): Pick<ControlActivities, 'discover' | 'label' | 'select'> {
  return {
    async discover({ target, rule, rollouts: ref }) {
      const environment = await environments.get(target);
      const description = await environment.describe();
      const rollouts = await scored(ref);
      const found = discover({ rollouts, description, rule });
      // Examples are shown to others (a synthesizer, a router): none may hold a test task's text, not even as a part of its own.
      const tests = await testTexts(environment);
      const showable = rollouts.filter(({ messages }) => leaked(tests, taskText(opening(messages))) === undefined);
      const examples = new Map(discover({ rollouts: showable, description, rule }).map((c) => [c.name, c.examples]));
      const candidates = found.map((candidate) => ({ ...candidate, examples: examples.get(candidate.name) ?? [] }));
      const key = `candidates/${digest({ ref, rule, version: description.version })}`;
      const stored = await putJson(store, { key, producer: 'discover', inputs: [ref], value: candidates });
      return { ref: stored, candidates };
    },

    async label({ target, rollouts, candidates: ref, pass, seed }) {
      const description = await (await environments.get(target)).describe();
      const candidates = await readJson<Candidate[]>(store, ref);
      const value = label({ rollouts: await scored(rollouts), candidates, description, pass, seed });
      const key = `labels/${digest({ rollouts, ref, pass, seed })}`;
      return putJson(store, { key, producer: 'label', inputs: [rollouts, ref], value });
    },

    async select({ rule, candidates: ref, labels }) {
      const candidates = await readJson<Candidate[]>(store, ref);
      const passes = await Promise.all(labels.map((pass) => readJson<LabelPass>(store, pass)));
      const selection = selectCapabilities({ passes, rule });
      const key = `selection/${digest({ rule, labels })}`;
      const stored = await putJson(store, { key, producer: 'select', inputs: [ref, ...labels], value: selection });
      const selected = selection.capabilities.filter((c) => c.selected);
      return {
        ref: stored,
        selected: selected.flatMap(({ name, votes }) => {
          const candidate = candidates.find((c) => c.name === name);
          return candidate ? [{ candidate, votes }] : [];
        }),
      };
    },
  };

  async function scored(ref: ArtifactRef): Promise<ScoredRollout[]> {
    const all: ScoredRollout[] = [];
    for await (const rollout of readRollouts({ store, ref })) if (rollout.status === 'scored') all.push(rollout);
    return all;
  }
}

/** What was said before the agent's first answer; it may have greeted the user before. */
function opening(messages: Message[]): Message[] {
  const asked = messages.findIndex((message) => message.role === 'user');
  const answered = messages.findIndex((message, n) => n > asked && message.role === 'assistant');
  return answered < 0 ? messages : messages.slice(0, answered);
}
