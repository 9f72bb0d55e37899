/** JSON in a text, for a schema to be piped behind: text that is no JSON is an issue like any other, and never an exception without a place. */
import { z } from 'zod';
import { reasonOf } from './failures';

export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `no JSON: ${reasonOf(error)}` });
    return z.NEVER;
  }
});
