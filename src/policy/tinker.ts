/** Uses a server of the Tinker API as trainer: finds its Python client, its address and its limits. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../store/project-root';
import { checkVariable } from '../domain/allowed';
import type { Campaign, Trainer } from '../domain/campaign';
import { baseFolder } from './hub';
import { askPython } from './python';

type TinkerServer = Extract<Trainer, { kind: 'tinker' }>;

/** Returns the Python that has the client package: $CAMPAIGN_TINKER_PYTHON, else the virtual environment that `make tinker` makes. */
export const tinkerPython = (): string =>
  process.env['CAMPAIGN_TINKER_PYTHON'] ?? join(projectRoot, '.venv-tinker/bin/python');

export const hasTinkerPython = (): boolean => existsSync(tinkerPython());

const KEY = 'TINKER_API_KEY';

/** Returns the worker's own server (TINKER_BASE_URL), whose key it has, before that of the campaign file. Throws NotAllowed. */
export function tinkerUrl({ url }: TinkerServer): string {
  const own = process.env['TINKER_BASE_URL'];
  if (own === undefined && process.env[KEY]) checkVariable('trainer.url', KEY, url);
  return own ?? url;
}

export const tinkerKeys = (): NodeJS.ProcessEnv => ({ [KEY]: process.env[KEY] });

const answerSchema = z.object({
  model: z.string(),
  found: z.object({ reduction: z.string(), modules: z.array(z.string()), clips: z.boolean() }).nullable(),
});

/**
 * Asks the server which model it trains. With `tries` it also trains an adapter like the campaign's for some steps and discards it. Throws BadInput if
 * the server can't train the adapter.
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
      base_model: baseFolder(o.campaign.baseModel),
      lora: { ...of, target_modules: targetModules },
      max_grad_norm: maxGradNorm,
      tries: o.tries,
    },
    answer: answerSchema,
    program: { python: tinkerPython(), keys: tinkerKeys(), silentSeconds: 600 },
  });
};
