/** What the control worker registers. */
export { arm } from './arm';
export { campaign } from './campaign';
export { capability } from './capability';
