/** Title, tabs, and the view that the address names: `#router`, or `#capabilities/NAME` for a place in it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CampaignPage } from '../../src/view/api';
import { AnalysisPage, BaseModel, Selection } from './analysis';
import { Capabilities } from './capabilities';
import { ComparisonPage } from './comparison';
import { Conversation, Conversations } from './conversations';
import { Approvals, LiveView } from './live';
import { type Page, parsed, PlaceContext } from './page';
import { PolicyDetails, Summary } from './policies';
import { Router, Run } from './run';
import { Training } from './training';

/** URLSearchParams decodes what is behind `?`. */
function hashNow(): string {
  const [name = '', ...query] = window.location.hash.slice(1).split('?');
  try {
    return [decodeURIComponent(name), ...query].join('?');
  } catch {
    return '';
  }
}

function useHash(): string {
  const [hash, set] = useState(hashNow);
  useEffect(() => {
    const changed = () => set(hashNow());
    window.addEventListener('hashchange', changed);
    changed();
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return hash;
}

const EVERY_MS = 3000;

/** Asks for the page of a running campaign again and again; a report that the page has is not sent twice. */
function useFresh(given: Page): Page {
  const [page, set] = useState(given);
  useEffect(() => {
    if (page.kind !== 'campaign' || !page.isLive) return undefined;
    const timer = setTimeout(async () => {
      const has = page.report ? `?report=${encodeURIComponent(page.report.campaign.finishedAt)}` : '';
      const answer = await fetch(`api/page${has}`).catch(() => undefined);
      // A server that does not answer now is asked again.
      if (!answer?.ok) return set({ ...page });
      const fresh = parsed<CampaignPage>(await answer.text());
      set({ ...(page.report && { report: page.report }), ...fresh });
    }, EVERY_MS);
    return () => clearTimeout(timer);
  }, [page]);
  return page;
}

interface View {
  id: string;
  name: string;
  show: (query: string) => ComponentChildren;
}

function viewsOf(page: Page): View[] {
  if (page.kind === 'comparison')
    return [{ id: 'comparison', name: 'Comparison', show: () => <ComparisonPage comparison={page.comparison} /> }];
  if (page.kind === 'analysis') return [{ id: 'analysis', name: 'Analysis', show: () => <AnalysisPage {...page} /> }];
  const { report, live, approvals, links, served } = page;
  const views: (View | false | undefined)[] = [
    approvals && { id: 'approval', name: 'Waits for you', show: () => <Approvals waits={approvals} /> },
    live && { id: 'live', name: 'Live', show: () => <LiveView live={live} links={links} /> },
    ...(report ? reportViews(report, links) : []),
    served && {
      id: 'conversations',
      name: 'Conversations',
      show: (query) => <Conversations key={query === '' ? 'first' : 'list'} query={query} />,
    },
  ];
  return views.filter((view) => view !== undefined && view !== false);
}

function reportViews(report: NonNullable<CampaignPage['report']>, links: CampaignPage['links']): (View | false)[] {
  const { arms, selection, base, capabilities, router } = report;
  const isTrained = [...(capabilities ?? []), ...(arms ?? [])].some(({ training }) => training);
  return [
    { id: 'summary', name: 'Summary', show: () => <Summary report={report} /> },
    arms !== undefined && { id: 'policies', name: 'Policies', show: () => <PolicyDetails report={report} /> },
    (selection !== undefined || base !== undefined) && {
      id: 'analysis',
      name: 'Analysis',
      show: () => (
        <>
          {selection && <Selection selection={selection} />}
          <BaseModel report={report} />
        </>
      ),
    },
    capabilities !== undefined && {
      id: 'capabilities',
      name: 'Capabilities',
      show: () => <Capabilities report={report} />,
    },
    isTrained && { id: 'training', name: 'Training', show: () => <Training report={report} /> },
    router !== undefined && { id: 'router', name: 'Router', show: () => <Router report={report} /> },
    { id: 'run', name: 'Run', show: () => <Run report={report} links={links} /> },
  ];
}

export function App({ page: given }: { page: Page }) {
  const page = useFresh(given);
  const hash = useHash();
  // The page no longer shows what was decided, so the header says it.
  const [announced, announce] = useState('');
  const [name = '', query = ''] = hash.split('?');
  const [first = '', ...rest] = name.split('/');
  const views = viewsOf(page);
  const isConversation = first === 'conversation' && page.kind === 'campaign' && page.served;
  const view =
    views.find(({ id }) => id === (isConversation ? 'conversations' : first)) ??
    (first === '' || views.length === 1 ? views[0] : undefined);
  useEffect(() => {
    const target = document.getElementById(name);
    for (let at = target?.closest('details'); at; at = at.parentElement?.closest('details')) at.open = true;
    if (target) target.scrollIntoView();
    else window.scrollTo(0, 0);
  }, [name]);
  const campaign = page.kind === 'campaign' ? page.title : undefined;
  const served = page.kind === 'campaign' && page.served;
  return (
    <PlaceContext.Provider value={{ campaign, served, announce }}>
      <header>
        <h1>{page.title}</h1>
        {views.length > 1 && (
          <nav aria-label="Views">
            {views.map(({ id, name: label }) => (
              <a key={id} href={`#${id}`} aria-current={id === view?.id ? 'page' : undefined}>
                {label}
              </a>
            ))}
          </nav>
        )}
        <span role="status">{announced}</span>
      </header>
      <main>
        {isConversation ? <Conversation id={rest.join('/')} query={query} /> : view?.show(query)}
        {!view && (
          <p class="bad">
            This page has no view {first}. It has {views.map(({ id }) => id).join(', ')}.
          </p>
        )}
      </main>
      <footer>
        {campaign !== undefined && 'A number opens to its lineage. '}
        {campaign !== undefined && !served && (
          <>
            <code>campaign view {campaign}</code> shows all conversations.
          </>
        )}
      </footer>
    </PlaceContext.Provider>
  );
}
