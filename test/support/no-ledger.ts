/** For parts that ask no language model: whoever asks after all is told so. */
import type { Ledger } from '../../src/language-model/model';

const refuse = async () => {
  throw new Error('nothing may be asked here');
};

export const noLedger: Ledger = { find: refuse, permit: refuse, keep: refuse, count: refuse };
