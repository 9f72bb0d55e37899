/** Title, tabs, and the view that the address names: `#router`, or the id of anything in a view, which is then scrolled to. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Block, Page, View } from '../../src/report/blocks';
import { Blocks, PageContext } from './blocks';
import { Conversation, Conversations } from './conversations';
import { parsed } from './text';

/** What is behind `?` is read by URLSearchParams, which decodes it. */
function hashNow(): string {
  const [name = '', ...query] = window.location.hash.slice(1).split('?');
  try {
    return [decodeURIComponent(name), ...query].join('?');
  } catch {
    return '';
  }
}

/** What the address names, as it changes. */
function useHash(): string {
  const [hash, set] = useState(hashNow);
  useEffect(() => {
    const changed = () => set(hashNow());
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return hash;
}

const has = (id: string, blocks: readonly (Block | undefined | false)[]): boolean =>
  blocks.some(
    (block) => block && (('id' in block && block.id === id) || (block.kind === 'fold' && has(id, block.blocks))),
  );

const EVERY_MS = 3000;

/** A page that is served is asked for again while its campaign goes on. */
function useFresh(given: Page): Page {
  const [page, set] = useState(given);
  useEffect(() => {
    if (!page.live) return undefined;
    const timer = setTimeout(async () => {
      const answer = await fetch('api/page').catch(() => undefined);
      // Whoever does not answer now may answer later.
      set(answer?.ok ? parsed<Page>(await answer.text()) : { ...page });
    }, EVERY_MS);
    return () => clearTimeout(timer);
  }, [page]);
  return page;
}

export function App({ page: given }: { page: Page }) {
  const page = useFresh(given);
  const hash = useHash();
  // Of a decision: what was decided is gone from the page when it is asked for again.
  const [told, tell] = useState('');
  const [name = '', query = ''] = hash.split('?');
  const [first] = page.views;
  const view = useMemo(
    () => page.views.find(({ id, blocks }) => id === name || has(name, blocks)) ?? first,
    [page, name, first],
  );
  const rollout = name.startsWith('conversation/') ? name.slice('conversation/'.length) : undefined;
  const shown = rollout === undefined ? (name === 'conversations' && page.served ? name : view?.id) : 'conversations';
  useEffect(() => {
    const target = document.getElementById(name);
    for (let at = target?.closest('details'); at; at = at.parentElement?.closest('details')) at.open = true;
    if (target) target.scrollIntoView();
    else window.scrollTo(0, 0);
  }, [name]);
  const tabs: Pick<View, 'id' | 'name'>[] = [
    ...page.views,
    ...(page.served ? [{ id: 'conversations', name: 'Conversations' }] : []),
  ];
  return (
    <PageContext.Provider value={{ ...page, tell }}>
      <header>
        <h1>{page.title}</h1>
        {tabs.length > 1 && (
          <nav aria-label="Views">
            {tabs.map((tab) => (
              <a key={tab.id} href={`#${tab.id}`} aria-current={tab.id === shown ? 'page' : undefined}>
                {tab.name}
              </a>
            ))}
          </nav>
        )}
        <span role="status">{told}</span>
      </header>
      <main>
        {rollout !== undefined ? (
          <Conversation id={rollout} message={new URLSearchParams(query).get('message')} />
        ) : shown === 'conversations' ? (
          <Conversations query={query} />
        ) : (
          view && <Blocks blocks={view.blocks} />
        )}
      </main>
      <footer>
        {page.campaign && 'A number opens to what it rests on. '}
        {page.campaign && !page.served && (
          <>
            <code>campaign view {page.campaign}</code> shows all conversations.
          </>
        )}
      </footer>
    </PageContext.Provider>
  );
}
