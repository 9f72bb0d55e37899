/**
 * Which conversations a name stands for. Invariant: result, labels by people and spending of a name are of the same conversations, and of
 * no campaign; the name is taken before anything is asked.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { createFile } from '../../artifacts/durable-file';
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import { spentOf } from '../../language-model/ledger';
import { messageOf, UserError } from '../errors';
import type { Loaded } from './conversations';
import type { Place } from './places';

const claimSchema = z.strictObject({ digest: z.string(), files: z.array(z.string()) });
export type Claim = z.infer<typeof claimSchema>;

/** By what the conversations hold and how they are called, in any order. */
export const claimOf = ({ ids, files }: Pick<Loaded, 'ids'> & { files: readonly string[] }): Claim => ({
  digest: digest([...ids].sort(([a], [b]) => (a < b ? -1 : 1))),
  files: [...files],
});

/** @throws UserError where the name is another's. */
export async function checkClaim(o: { place: Place; claim: Claim; store: ArtifactStore }): Promise<void> {
  const { place, claim, store } = o;
  const before = readClaim(place);
  if (!before) {
    const used = existsSync(place.folder) && readdirSync(place.folder).length > 0;
    if (used || (await spentOf({ store, campaign: place.name })).length > 0)
      throw new UserError(
        `"${place.name}" is the name of a campaign, or ${place.folder} holds what no analysis wrote; give another --name`,
      );
  } else if (before.digest !== claim.digest)
    throw new UserError(
      `"${place.name}" is the analysis of other conversations (${before.files.join(', ')}); give another --name, ` +
        `or remove ${place.folder} with its labels by people`,
    );
}

export async function takeName(o: { place: Place; claim: Claim; store: ArtifactStore }): Promise<void> {
  const { place, claim } = o;
  const body = `${JSON.stringify(claim, null, 2)}\n`;
  const taken = await createFile({ path: place.conversations, body, aside: place.aside });
  // Somebody was first: with the same conversations?
  if (!taken) await checkClaim(o);
}

function readClaim({ conversations }: Pick<Place, 'conversations'>): Claim | undefined {
  if (!existsSync(conversations)) return undefined;
  try {
    return claimSchema.parse(JSON.parse(readFileSync(conversations, 'utf8')));
  } catch (error) {
    throw new UserError(`${conversations} is damaged (${messageOf(error)}); give another --name`);
  }
}
