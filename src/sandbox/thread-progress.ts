/** What a thread writes where its owner reads it without a message: two shared numbers. */

/** The id of the call that began last. */
export const RUNNING = 0;
/** How many calls are done; loading is one. */
export const DONE = 1;
