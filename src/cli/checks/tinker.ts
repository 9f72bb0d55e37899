/** The Tinker server that trains a campaign's adapters: whether its client is there, it has the base model, and does what is asked of it. */
import { type CheckItem, Lack } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { isFailure } from '../../domain/failures';
import { checkTinker, hasTinkerPython, tinkerPython } from '../../policy/tinker';
import { messageOf } from '../errors';

/** `tries`: an adapter is made there, and some steps are taken with it. */
export function tinkerChecks(campaign: Campaign, { tries }: { tries: boolean }): CheckItem[] {
  const { trainer } = campaign;
  if (trainer.kind !== 'tinker') return [];
  return [
    {
      name: 'Tinker client',
      fix: 'run `make tinker`, or name the Python that has it in CAMPAIGN_TINKER_PYTHON',
      run() {
        if (!hasTinkerPython()) throw new Lack(`there is no ${tinkerPython()}`);
        return tinkerPython();
      },
    },
    {
      name: 'Tinker server',
      needs: ['base model', 'Tinker client'],
      fix: 'start it, or correct trainer.url in the campaign file',
      async run() {
        try {
          const { model, found } = await checkTinker({ server: trainer, campaign, tries });
          if (!found) return `${trainer.url} has ${model}`;
          const does = `${found.clips ? 'clips' : 'does not clip'} gradients and reduces a loss by ${found.reduction}`;
          return `${trainer.url} trains ${model}: ${does}`;
        } catch (error) {
          if (!isFailure(error, 'BadInput')) throw error;
          throw new Lack(messageOf(error), 'correct the campaign file, or name another server');
        }
      },
    },
  ];
}
