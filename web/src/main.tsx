/** The page of a campaign's report, of an analysis, a comparison, or what waits for approval: what it shows is in the page, as data. */
import { render } from 'preact';
import type { Page } from '../../src/report/blocks';
import { parsed } from './text';
import { App } from './app';
// @ts-expect-error -- no module, but what the build puts into the page
import './style.css';

const text = document.getElementById('data')?.textContent ?? '';
const root = document.getElementById('app');
if (root) render(<App page={parsed<Page>(text)} />, root);
