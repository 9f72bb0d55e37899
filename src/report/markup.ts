/**
 * Escaped markup and the style sheet of all pages. Invariant: whatever is put into a `markup` template is escaped, unless it is itself markup; so
 * no name, reason or definition (some are written by models) can add elements or attributes, or be read as something else than what it is.
 */
import { visible } from './format';

export class Markup {
  constructor(readonly text: string) {}
}

type Part = string | number | Markup | undefined | false | readonly Part[];

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => visible(text).replace(/[&<>"']/g, (character) => entities[character] ?? '');

const render = (part: Part): string => {
  if (part === undefined || part === false) return '';
  if (part instanceof Markup) return part.text;
  if (typeof part === 'number') {
    if (!Number.isFinite(part))
      throw new Error(`a plot or table was given ${part}: a measured number is finite or absent`);
    // Coordinates to a hundredth: less is not seen and makes the page larger.
    return String(Math.round(part * 100) / 100);
  }
  return typeof part === 'string' ? escape(part) : part.map(render).join('');
};

/** Template tag: `markup`<td>${name}</td>``. Lists are joined, undefined and false vanish; a number is a coordinate or a count, finite. */
export const markup = (strings: TemplateStringsArray, ...parts: Part[]): Markup =>
  new Markup(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));

export const style = `
:root { color-scheme: light dark; --paper:#fdfdfc; --ink:#1d1d1b; --quiet:#6b6b66; --rule:#e2e2dd; --band:#e9f1ea; --code:#f2f2ee;
  --base:#8a8a84; --adapter:#2d6a9f; --routed:#b4441a; --baseline:#4d7d38 }
@media (prefers-color-scheme: dark) { :root { --paper:#161715; --ink:#e6e5e0; --quiet:#9a9a92; --rule:#32332f; --band:#1f2b22; --code:#23241f;
  --base:#8f8f88; --adapter:#7ab3e4; --routed:#ef8a5c; --baseline:#98c67e } }
* { box-sizing: border-box }
body { margin:0 auto; max-width:1180px; padding:24px 16px 60px; background:var(--paper); color:var(--ink); overflow-wrap:anywhere;
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif; font-variant-numeric:tabular-nums }
h1 { font-size:26px; margin:0 } h2 { font-size:18px; margin:40px 0 4px; padding-top:12px; border-top:1px solid var(--rule) }
h3 { font-size:15px; margin:22px 0 2px } p, li { margin:4px 0; max-width:90ch } ul { padding-left:18px; margin:8px 0 }
a { color:var(--adapter) } .quiet { color:var(--quiet); font-size:13px } .bad { color:var(--routed) } .strong { font-weight:600 }
code, pre { font:12px/1.45 ui-monospace,"SF Mono","DejaVu Sans Mono",monospace; background:var(--code); border-radius:3px; padding:1px 4px }
.scroll { overflow-x:auto; margin:10px 0 } figure { margin:12px 0 }
table { border-collapse:collapse; font-size:13.5px; overflow-wrap:break-word } th { text-align:left; color:var(--quiet); font-weight:500 }
th, td { padding:5px 16px 5px 0; vertical-align:top; border-bottom:1px solid var(--rule); max-width:420px }
summary { cursor:pointer } details.figure { display:inline-block; vertical-align:top; white-space:nowrap } details.figure .quiet { display:block }
details.figure p { white-space:normal; max-width:340px; font-size:12.5px } .fold { margin:6px 0; max-width:110ch } .fold > div { margin-left:14px }
.quote { display:grid; grid-template-columns:minmax(60px,max-content) 1fr; gap:4px 14px; margin:6px 0 10px; font-size:13px }
.quote .said { white-space:pre-wrap } .quote .cited { background:var(--band) }
pre.diff { padding:6px 8px; max-height:440px; overflow:auto; white-space:pre-wrap } .added { color:var(--baseline) } .removed { color:var(--routed) }
svg { display:block; font-size:13px } svg text { fill:var(--ink) } svg .quiet, svg .tick { fill:var(--quiet) } svg .tick { font-size:11.5px }
.adapter, .sum, .line-0 { stroke:var(--adapter); fill:var(--adapter) } .routed, .line-1 { stroke:var(--routed); fill:var(--routed) }
.baseline, .line-2 { stroke:var(--baseline); fill:var(--baseline) } .base, .bound, .line-3 { stroke:var(--base); fill:var(--base) }
.line-4 { stroke:var(--ink); fill:var(--ink) } .open { fill:var(--paper) } .curve { fill:none; stroke-width:1.5 }
.grid { stroke:var(--rule) } .reference { stroke:var(--base); stroke-dasharray:2 3 } .band { fill:var(--band) } .strip { fill:var(--code) }
@media print { body { max-width:none; padding:0 } }
`;
