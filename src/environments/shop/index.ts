export { createShop } from './shop';
