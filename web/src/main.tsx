/** Shows the data that the page holds: a campaign, an analysis, or a comparison. */
import { render } from 'preact';
import { type Page, parsed } from './page';
import { App } from './app';
// @ts-expect-error -- the build puts it into the page
import './style.css';

const text = document.getElementById('data')?.textContent ?? '';
const root = document.getElementById('app');
if (root) render(<App page={parsed<Page>(text)} />, root);
