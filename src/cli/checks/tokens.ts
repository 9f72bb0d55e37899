/** How much of a target's text the base model's tokenizer does not know. Invariant: no model is loaded. */
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import { isUnknown, TOKENS_FIX, tokensText } from '../../domain/base-check';
import type { Campaign } from '../../domain/campaign';
import type { Environment } from '../../domain/environment';
import { openEnvironment } from '../../environments/open';
import { openingsOf } from '../../environments/openings';
import { checkTokens as countTokens } from '../../policy/base-model';
import { registry as allKinds, type Registry } from '../../registry';
import { messageOf } from '../errors';
import { pythonPath, type Home } from '../project';
import { failed, passed, type Check } from './check';

const NAME = 'base tokenizer';

/** Undefined where the target can't be opened: that is told by a check of its own. */
export async function checkTokens(o: {
  campaign: Campaign;
  home: Home;
  python?: string;
  registry?: Registry;
}): Promise<Check | undefined> {
  const { campaign, home, python = pythonPath(), registry = allKinds } = o;
  const texts = await textsOf(campaign, home, registry.environments).catch(() => undefined);
  if (!texts) return undefined;
  try {
    const tokens = await countTokens({ python, model: campaign.baseModel.path, texts });
    const text = tokensText(tokens);
    return isUnknown(tokens) ? failed(NAME, text, `${TOKENS_FIX}, or run with --force`) : passed(NAME, text);
  } catch (error) {
    return failed(NAME, messageOf(error), 'correct baseModel.path in the campaign file');
  }
}

async function textsOf(
  { target, seed }: Campaign,
  home: Home,
  kinds: Registry['environments'],
): Promise<readonly string[]> {
  const store = openFolderStore(join(home.root, 'artifacts'));
  let environment: Environment | undefined;
  try {
    environment = await openEnvironment(target, { store, partners: {}, kinds });
    const opened = environment;
    const tasks = (await opened.tasks('train')).map(({ id }) => id);
    // Where a model plays the user there is nobody here to say its first words: the written policy has to do.
    const openings = openingsOf({ environment: opened, tasks, seed }).catch(() =>
      openingsOf({ environment: opened, tasks: [], seed }),
    );
    return (await openings).texts;
  } finally {
    await environment?.close().catch(() => undefined);
  }
}
