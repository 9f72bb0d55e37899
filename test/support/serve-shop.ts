/** Serves the shop on stdio: `node -r test/support/register.cjs test/support/serve-shop.ts`. */
import { serveEnvironment } from '../../src/environments/serve';
import { createShop } from '../../examples/shop/target/shop';

void serveEnvironment({ environment: createShop() });
