/** The shop on stdio, for the tests: `node -r test/support/register.cjs test/contract/serve-shop.ts`. */
import { serveEnvironment } from '../../src/environments/serve';
import { createShop } from '../../examples/shop/target/shop';

void serveEnvironment({ environment: createShop() });
