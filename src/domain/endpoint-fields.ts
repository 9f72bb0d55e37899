/** Fields of every endpoint that a campaign file names. Invariant: a key that was put where none belongs is refused, and can be left unsaid. */
import { z } from 'zod';

/** A user, and perhaps a password, before the host. */
export const hasCredentials = (url: string): boolean => /^[a-z][a-z\d+.-]*:[/\\]*[^/\\?#]*@/i.test(url);

/** Of the API, e.g. https://api.example.com/v1. */
export const urlField = z
  .url()
  .refine((url) => !hasCredentials(url), 'a URL without user and password; apiKeyEnv names the variable with the key');

/** Environment variable with the API key; left out for servers that need none. */
export const apiKeyEnvField = z
  .string()
  .regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable, such as EXAMPLE_API_KEY: the key itself belongs in it')
  .optional();
