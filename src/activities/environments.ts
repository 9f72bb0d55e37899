/** Environments that are open in this worker. The cost of simulated users and judges is recorded before their rollout counts as done. */
import { canonical } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { modelsWithout, sumOf, type ChatModel, type ModelUsage } from '../domain/endpoints';
import type { Environment, PartnerRole } from '../domain/environment';
import type { EnvironmentSpec } from '../domain/kinds';
import type { EnvironmentKind } from '../environments/kinds';
import { partnersOf, openEnvironment } from '../environments/kinds';
import type { Ledger } from '../llm/model';
import { ledgerOf } from './ledger';
import type { Payer } from './types';

export { hasNamespaces } from '../environments/namespace';

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

  /** Returns environments whose partner models (simulated users and judges) are charged to `payer`. */
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
    const { user, judge } = partnersOf(spec, this.kinds);
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

/** Wraps an environment so that reset throws BudgetSpent once the budget is used up. */
function countingEnvironment(environment: Environment, partners: readonly Partner[], step: string): Environment {
  return {
    ...environment,
    async reset(task, signal) {
      const ended = new AbortController();
      const used: { role: PartnerRole; usage: ModelUsage }[] = [];
      const settle = async (): Promise<void> => {
        const settled = used.splice(0);
        try {
          await Promise.all(
            partners.map(async ({ role, price, ledger }) => {
              const own = settled.filter((one) => one.role === role).map(({ usage }) => ({ requests: 1, ...usage }));
              const { requests, ...usage } = sumOf(own);
              if (requests > 0) await ledger.count({ usage, requests, step, price });
            }),
          );
        } finally {
          ended.abort();
        }
      };
      try {
        for (const { role, price, ledger } of partners)
          await ledger.permit({ ended: ended.signal, field: `target.${role}`, price });
        const episode = await environment.reset(task, signal, (role, usage) => void used.push({ role, usage }));
        return { ...episode, close: async () => void (await Promise.all([settle(), episode.close()])) };
      } catch (error) {
        await settle().catch(() => undefined);
        throw error;
      }
    },
  };
}
