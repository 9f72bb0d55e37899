/** Title, tabs, and the view that the address names, such as `#router`. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CampaignPage } from '../../src/view/api';
import { Analysis, AnalysisPage } from './analysis';
import { Capabilities } from './capabilities';
import { ComparisonPage } from './comparison';
import { ALL, Conversation, Conversations, FAILURES } from './conversations';
import { Home } from './home';
import { Approvals, LiveView } from './live';
import { type Page, parsed, PlaceContext } from './page';
import { PolicyDetails, Summary } from './policies';
import { Router, Run } from './run';
import { Training } from './training';

function useHash(): string {
  const [hash, set] = useState(window.location.hash);
  useEffect(() => {
    const changed = () => set(window.location.hash);
    window.addEventListener('hashchange', changed);
    changed();
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return hash.slice(1);
}

/** Text that is no valid encoding stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const EVERY_MS = 3000;

/** Asks for the page of a running campaign again and again; a report that the page has is not sent twice. */
function useFresh(given: Page): Page {
  const [page, set] = useState(given);
  useEffect(() => {
    if (page.kind !== 'campaign' || !page.isLive) return undefined;
    const timer = setTimeout(async () => {
      const { report } = page;
      const has = report ? `?report=${encodeURIComponent(report.campaign.finishedAt)}` : '';
      const answer = await fetch(`api/page${has}`).catch(() => undefined);
      // A server that does not answer now is asked again.
      const fresh = answer?.ok ? parsed<CampaignPage>(await answer.text()) : page;
      set({ ...(report && { report }), ...fresh });
    }, EVERY_MS);
    return () => clearTimeout(timer);
  }, [page]);
  return page;
}

type View = readonly [id: string, name: string, show: (query: string) => ComponentChildren];

function viewsOf(page: Page): View[] {
  if (page.kind === 'comparison')
    return [['comparison', 'Comparison', () => <ComparisonPage comparison={page.comparison} />]];
  if (page.kind === 'analysis') return [['analysis', 'Analysis', () => <AnalysisPage {...page} />]];
  if (page.kind === 'home') return [['home', 'Campaigns', () => <Home {...page} />]];
  const { report, live, approvals, links, served } = page;
  const { arms, selection, capabilities, router } = report ?? {};
  const isTrained = [...(capabilities ?? []), ...(arms ?? [])].some(({ training }) => training);
  const views: (View | false | undefined)[] = [
    approvals && ['approval', 'Waits for you', () => <Approvals waits={approvals} />],
    live && ['live', page.isLive ? 'Live' : 'State', () => <LiveView live={live} links={links} />],
    report && ['summary', 'Summary', () => <Summary report={report} />],
    report?.arms && ['policies', 'Policies', () => <PolicyDetails report={report} />],
    report && (selection ?? report.base?.groups) && ['analysis', 'Analysis', () => <Analysis report={report} />],
    report?.capabilities && ['capabilities', 'Capabilities', () => <Capabilities report={report} />],
    report && isTrained && ['training', 'Training', () => <Training report={report} />],
    report && router && ['router', 'Router', () => <Router router={router} arms={arms} />],
    report && ['run', 'Run', () => <Run report={report} links={links} />],
    served && ['conversations', 'Conversations', (query) => <Conversations query={query || (arms ? FAILURES : ALL)} />],
  ];
  return views.filter((view) => view !== undefined && view !== false);
}

export function App({ page: given }: { page: Page }) {
  const page = useFresh(given);
  const hash = useHash();
  // The page no longer shows what was decided, so the header says it.
  const [announced, announce] = useState('');
  const [encoded = '', query = ''] = hash.split('?');
  const name = decoded(encoded);
  const [first = '', ...rest] = name.split('/');
  const views = viewsOf(page);
  const isConversation = first === 'conversation' && page.kind === 'campaign' && page.served;
  const view =
    views.find(([id]) => id === (isConversation ? 'conversations' : first)) ??
    (first === '' || views.length === 1 ? views[0] : undefined);
  useEffect(() => {
    const target = document.getElementById(name);
    if (target instanceof HTMLDetailsElement) target.open = true;
    if (target) target.scrollIntoView();
    else window.scrollTo(0, 0);
  }, [name]);
  const campaign = page.kind === 'campaign' ? page.title : undefined;
  const served = page.kind === 'campaign' && page.served;
  return (
    <PlaceContext.Provider value={{ campaign, served, announce }}>
      <header>
        <h1>{page.title}</h1>
        {served && <a href="../">all campaigns</a>}
        {views.length > 1 && (
          <nav aria-label="Views">
            {views.map(([id, label]) => (
              <a key={id} href={`#${id}`} aria-current={id === view?.[0] ? 'page' : undefined}>
                {label}
              </a>
            ))}
          </nav>
        )}
        <span role="status">{announced}</span>
      </header>
      <main>
        {isConversation ? <Conversation id={rest.join('/')} query={query} /> : view?.[2](query)}
        {!view && (
          <p class="bad">
            This page has no view {first}. It has {views.map(([id]) => id).join(', ')}.
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
