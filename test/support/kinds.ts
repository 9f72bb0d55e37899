/** The kinds of the program with those of the shop, for tests. */
import { resolve } from 'node:path';
import { kindOf } from '../../src/domain/kinds';
import { withPlugins } from '../../src/plugins';

/** In campaign files. */
export const shopPlugin = resolve(__dirname, '../../examples/shop');

export const registry = withPlugins([shopPlugin]);

export const rules = kindOf(registry.analysts, { kind: 'rules' });
export const generators = kindOf(registry.synthesizers, { kind: 'generators' });

/** The parts of a campaign file on the shop. */
export const shopParts = {
  plugins: [shopPlugin],
  target: { kind: 'shop' },
  analyst: { kind: 'rules' },
  synthesizer: { kind: 'generators' },
};
/** A campaign on the shop that says nothing more. */
export const shopCampaign = { name: 'shop', ...shopParts, baseModel: { path: 'models/base' } };
