/**
 * Environments that are open in this worker: one of each, shared by all its activities. Invariant: what the models that play users and judges
 * cost is counted for the campaign that plays, once an episode, before its rollout counts as done.
 */
import { canonical } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { modelsWithout, type ChatModel, type ModelUsage } from '../domain/endpoints';
import type { Environment, Episode, PartnerRole } from '../domain/environment';
import type { EnvironmentSpec } from '../domain/kinds';
import type { EnvironmentKind } from '../environments/kinds';
import { describeSpec, openEnvironment } from '../environments/open';
import type { Ledger } from '../llm/model';
import { ledgerOf } from './context';
import type { Payer } from './types';

export { hasNamespaces } from '../environments/namespace';

/** Environments as a step sees them. */
export interface Environments {
  get(spec: EnvironmentSpec): Promise<Environment>;
}

/** `step` names a row of the report's costs. */
export type PlayingFor = Payer & { step: string };

export class EnvironmentPool {
  private readonly open = new Map<string, Promise<Environment>>();
  private readonly paid = new Map<string, Promise<Environment>>();

  constructor(
    private readonly store: ArtifactStore,
    private readonly kinds: readonly EnvironmentKind[],
  ) {}

  /** The same environments, where somebody pays for the models that play their other parties. */
  paidBy(payer: PlayingFor): Environments {
    return { get: async (spec) => this.paidEnvironment(spec, payer) };
  }

  private paidEnvironment(spec: EnvironmentSpec, payer: PlayingFor): Promise<Environment> {
    const partners = this.partnersOf(spec, payer);
    const environment = this.get(spec);
    if (partners.length === 0) return environment;
    const { campaign, budget, step } = payer;
    const key = canonical([spec, campaign, budget, step]);
    const known = this.paid.get(key);
    if (known) return known;
    const counting = environment.then((inner) => countingEnvironment(inner, partners, step));
    this.paid.set(key, counting);
    counting.catch(() => this.paid.delete(key));
    return counting;
  }

  private partnersOf(spec: EnvironmentSpec, { campaign, budget }: PlayingFor): Partner[] {
    const { user, judge } = describeSpec(spec, this.kinds);
    const partner = (role: PartnerRole, model: ChatModel | undefined): Partner[] =>
      model ? [{ role, price: model.price, ledger: ledgerOf({ store: this.store, campaign, budget, role }) }] : [];
    return [...partner('user', user), ...partner('judge', judge)];
  }

  /** Returns an environment for callers that play no episode. */
  get(spec: EnvironmentSpec): Promise<Environment> {
    // Prices of models do not affect what is played.
    const key = canonical(modelsWithout(['price'], spec));
    const known = this.open.get(key);
    if (known) return known;
    const opening = Promise.resolve(openEnvironment(spec, { store: this.store, kinds: this.kinds }));
    this.open.set(key, opening);
    // The next activity tries again to open it.
    opening.catch(() => this.open.delete(key));
    return opening;
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.open.values());
    this.open.clear();
    this.paid.clear();
    await Promise.all(all.map((e) => (e.status === 'fulfilled' ? e.value.close() : undefined)));
  }
}

interface Partner {
  role: PartnerRole;
  price: ChatModel['price'];
  ledger: Ledger;
}

/** An environment whose episodes begin only where the budget lets them. Throws BudgetSpent on reset. */
function countingEnvironment(environment: Environment, partners: readonly Partner[], step: string): Environment {
  return {
    ...environment,
    get appearance() {
      return environment.appearance!;
    },
    async reset(task, signal) {
      const ended = new AbortController();
      const used = new Map<PartnerRole, { usage: ModelUsage; requests: number }>();
      const settle = async (): Promise<void> => {
        try {
          await Promise.all(
            partners.map(async ({ role, price, ledger }) => {
              const own = used.get(role);
              used.delete(role);
              if (own) await ledger.count({ ...own, step, price });
            }),
          );
        } finally {
          ended.abort();
        }
      };
      try {
        for (const { role, price, ledger } of partners)
          await ledger.permit({ ended: ended.signal, field: `target.${role}`, price });
        const episode = await environment.reset(task, signal, (role, usage) =>
          used.set(role, sum(used.get(role), usage)),
        );
        return countingEpisode(episode, settle);
      } catch (error) {
        await settle().catch(() => undefined);
        throw error;
      }
    },
  };
}

const sum = (before: { usage: ModelUsage; requests: number } | undefined, more: ModelUsage) => {
  const { usage, requests } = before ?? { usage: NOTHING, requests: 0 };
  return {
    requests: requests + 1,
    usage: {
      promptTokens: usage.promptTokens + more.promptTokens,
      cachedTokens: usage.cachedTokens + more.cachedTokens,
      completionTokens: usage.completionTokens + more.completionTokens,
    },
  };
};
const NOTHING: ModelUsage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

const countingEpisode = (episode: Episode, settle: () => Promise<void>): Episode => ({
  ...episode,
  async close() {
    await Promise.all([settle(), episode.close()]);
  },
});
