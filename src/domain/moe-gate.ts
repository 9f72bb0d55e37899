/**
 * A gate inside the model (the method's variant `moe_gate`): at every token it weighs all adapters by what the model holds there. Invariant:
 * what has one can be served by the embedded policy server alone (docs/policy-server.md).
 */
import { z } from 'zod';

export const moeGateSchema = z.strictObject({
  /** `softmax` is over base and adapters; `sigmoid` gives each adapter from 0 to 2 on its own, at first 1: the plain sum. */
  form: z.enum(['sigmoid', 'softmax']).default('sigmoid'),
  /** A gate in each decoder layer, on what comes into it; or one for all layers, on the embeddings of the tokens so far. */
  scope: z.enum(['layer', 'global']).default('layer'),
});
export type MoeGate = z.infer<typeof moeGateSchema>;

export const moeGatesSchema = z
  .array(moeGateSchema)
  .default([])
  .refine((gates) => new Set(gates.map(({ form, scope }) => `${form} ${scope}`)).size === gates.length, {
    message: 'a list of gates of which each is there once',
  });
