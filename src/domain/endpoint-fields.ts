/** Fields of every endpoint that a campaign file names. Invariant: a key that was put where none belongs is refused, and can be left unsaid. */
import { z } from 'zod';

/** Of any wait for an answer: a day. Node's timers hold no more than 24 of them, and end at once beyond. */
export const MAX_SILENCE_SECONDS = 86_400;

/** Seconds that one waits for an answer. */
export const silenceField = z.number().int().positive().max(MAX_SILENCE_SECONDS);

/** A user, and perhaps a password, before the host. */
export const hasCredentials = (url: string): boolean => /^[a-z][a-z\d+.-]*:[/\\]*[^/\\?#]*@/i.test(url);

/** A URL whose server's key is elsewhere: `key` says where. */
export const keyedUrl = (key: string) =>
  z.url({ protocol: /^https?$/ }).refine((url) => !hasCredentials(url), `a URL without user and password; ${key}`);

/** Of the API, e.g. https://api.example.com/v1. */
export const urlField = keyedUrl('apiKeyEnv names the variable with the key');

/** Environment variable with the API key; left out for servers that need none. */
export const apiKeyEnvField = z
  .string()
  .regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable, such as EXAMPLE_API_KEY: the key itself belongs in it')
  .optional();
