/** The shop on stdio, for the tests: `node -r test/support/register.cjs test/contract/serve-shop.ts`. */
import { serveEnvironment } from '../../src/environments/serve';
import { createShop } from '../../src/environments/shop/shop';

void serveEnvironment({ environment: createShop() });
