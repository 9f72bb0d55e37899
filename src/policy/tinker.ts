/** A server of the Tinker API as trainer: where its client is, which server it is, and what it can't do. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../artifacts/project-root';
import { checkVariable } from '../domain/allowed';
import type { Campaign, Trainer } from '../domain/campaign';
import { askPython } from './python';

type TinkerServer = Extract<Trainer, { kind: 'tinker' }>;

/** Python with the client package: $CAMPAIGN_TINKER_PYTHON, else the virtual environment that `make tinker` makes. */
export const tinkerPython = (): string =>
  process.env['CAMPAIGN_TINKER_PYTHON'] ?? join(projectRoot, '.venv-tinker/bin/python');

export const hasTinkerPython = (): boolean => existsSync(tinkerPython());

const KEY = 'TINKER_API_KEY';

/** A worker's own server counts for a campaign that runs, whatever its file says: it has that server's key. Throws NotAllowed. */
export function tinkerUrl({ url }: TinkerServer): string {
  const own = process.env['TINKER_BASE_URL'];
  if (own === undefined && process.env[KEY]) checkVariable('trainer.url', KEY, url);
  return own ?? url;
}

/** Programs are given no key that is not theirs. */
export const tinkerKeys = (): NodeJS.ProcessEnv => ({ [KEY]: process.env[KEY] });

const answerSchema = z.object({
  model: z.string(),
  found: z.object({ reduction: z.string(), modules: z.array(z.string()), clips: z.boolean() }).nullable(),
});

/**
 * What the server is, and with `tries` what it does with an adapter such as the campaign's, by some steps of one that is then thrown away. Throws
 * BadInput for one that can't train it.
 */
export const checkTinker = (o: {
  server: TinkerServer;
  campaign: Pick<Campaign, 'training' | 'baseModel'>;
  tries: boolean;
}): Promise<z.infer<typeof answerSchema>> => {
  const { lora, maxGradNorm } = o.campaign.training;
  const { targetModules, ...of } = lora;
  return askPython({
    command: 'check-tinker',
    question: {
      url: tinkerUrl(o.server),
      server_model: o.server.model ?? null,
      base_model: o.campaign.baseModel.path,
      lora: { ...of, target_modules: targetModules },
      max_grad_norm: maxGradNorm,
      tries: o.tries,
    },
    answer: answerSchema,
    program: { python: tinkerPython(), keys: tinkerKeys(), idleSeconds: 600 },
  });
};
