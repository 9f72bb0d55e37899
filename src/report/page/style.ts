/** The style sheet of all pages: system fonts, two colour schemes, and the classes that the plots draw with. */

export const style = `
:root { color-scheme: light dark; --paper:#fdfdfc; --ink:#1d1d1b; --quiet:#6b6b66; --rule:#e2e2dd; --band:#e9f1ea; --accent:#b4441a;
  --adapter:#2d6a9f; --baseline:#4d7d38; --base:#8a8a84; --code:#f2f2ee }
@media (prefers-color-scheme: dark) { :root { --paper:#161715; --ink:#e6e5e0; --quiet:#9a9a92; --rule:#32332f; --band:#1f2b22;
  --accent:#ef8a5c; --adapter:#7ab3e4; --baseline:#98c67e; --base:#8f8f88; --code:#23241f } }
* { box-sizing: border-box }
body { margin:0 auto; max-width:1180px; padding:40px 24px 80px; background:var(--paper); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif; font-variant-numeric:tabular-nums }
h1 { font-size:26px; font-weight:600; margin:0 0 2px; overflow-wrap:anywhere }
h2 { font-size:18px; font-weight:600; margin:44px 0 4px; padding-top:14px; border-top:1px solid var(--rule) }
h3 { font-size:15px; font-weight:600; margin:24px 0 2px }
p { margin:4px 0; max-width:76ch } .quiet, figcaption { color:var(--quiet) } figcaption, .small { font-size:13px; max-width:90ch }
code { font:12.5px/1.4 ui-monospace,"SF Mono","DejaVu Sans Mono",monospace; background:var(--code); padding:1px 4px; border-radius:3px;
  overflow-wrap:anywhere }
ul.verdict { padding-left:18px; margin:8px 0 } ul.verdict li { margin:3px 0; max-width:80ch }
ul.verdict code { font-size:11px; color:var(--quiet); background:none; padding:0 }
figure { margin:12px 0 } .scroll { overflow-x:auto; margin:10px 0 }
table { border-collapse:collapse; font-size:13.5px } th { text-align:left; font-weight:500; color:var(--quiet) }
th, td { padding:5px 18px 5px 0; vertical-align:top; border-bottom:1px solid var(--rule) } td.wrap { min-width:170px; max-width:420px }
td { white-space:nowrap } td.wrap, td:first-child, td > div.quiet { white-space:normal } td > div.quiet { min-width:150px; max-width:230px }
dl { display:grid; grid-template-columns:max-content 1fr; gap:2px 18px; margin:10px 0; font-size:13.5px } dt { color:var(--quiet) } dd { margin:0; overflow-wrap:anywhere }
details.figure { display:inline-block; vertical-align:top } details.figure summary { cursor:pointer; list-style:none } summary::-webkit-details-marker { display:none }
details.figure b { font-weight:600; margin-right:4px } details.figure .quiet { font-size:12.5px }
details.figure .source { font-size:12.5px; white-space:normal; max-width:340px; padding:4px 0 }
.sha { font:11px ui-monospace,"DejaVu Sans Mono",monospace; color:var(--quiet) }
h4 { font-size:13.5px; font-weight:600; margin:14px 0 2px; overflow-wrap:anywhere } pre { margin:6px 0 }
details.seen, details.citation, div.citation { margin:5px 0; font-size:13.5px; max-width:100ch } details.citation, div.citation { padding-left:14px }
details.seen > summary, details.citation > summary, details.text > summary { cursor:pointer; overflow-wrap:anywhere }
details.seen > :not(summary) { margin-left:14px } summary > details.text { display:inline-block; vertical-align:top }
.text { white-space:pre-wrap; overflow-wrap:anywhere } details.text[open] > summary > .cut { display:none }
.conversation { display:grid; grid-template-columns:max-content 1fr; gap:4px 14px; margin:6px 0 10px 14px; font-size:13px; max-width:100ch }
.conversation .who { color:var(--quiet) } .conversation .cited { background:var(--band); border-radius:3px; padding:0 4px }
pre.diff { font:12px/1.45 ui-monospace,"SF Mono","DejaVu Sans Mono",monospace; background:var(--code); padding:6px 8px; border-radius:3px;
  max-height:440px; overflow:auto; white-space:pre-wrap; overflow-wrap:anywhere } .added { color:var(--baseline) } .removed { color:var(--accent) }
.bad { color:var(--accent) } .runs { display:grid; grid-template-columns:repeat(auto-fill,minmax(290px,1fr)); gap:14px 12px }
.runs h3 { margin:6px 0 6px; overflow-wrap:anywhere }
svg { display:block; font-size:13px } svg text { fill:var(--ink) } svg .quiet { fill:var(--quiet) } svg .strong { font-weight:600 }
svg .tick { font-size:11.5px; fill:var(--quiet) } .grid { stroke:var(--rule) } .axis { stroke:var(--quiet) }
.reference { stroke:var(--base); stroke-dasharray:2 3 } .leader { stroke:var(--rule) }
.band { fill:var(--band) } .strip { fill:var(--code) } .solved { fill:var(--adapter) } .unscored { fill:var(--accent); opacity:.6 }
.mark { fill:var(--adapter); stroke:var(--adapter); stroke-width:1.5 } .whisker { stroke:var(--adapter); stroke-width:2 }
.mark.base { fill:var(--base); stroke:var(--base) } .whisker.base { stroke:var(--base) }
.mark.sum { fill:var(--paper); stroke:var(--adapter) }
.mark.routed { fill:var(--accent); stroke:var(--accent) } .whisker.routed { stroke:var(--accent) }
.mark.baseline { fill:var(--baseline); stroke:var(--baseline) } .whisker.baseline { stroke:var(--baseline) }
.mark.bound, .mark.held-out { fill:var(--paper) } .mark.bound { stroke:var(--quiet) } .whisker.bound { stroke:var(--quiet) }
.curve { fill:none; stroke:var(--quiet); stroke-width:2 }
.curve.branch-0, .curve.branch-1, .curve.branch-2, .curve.branch-3 { stroke-width:1; stroke:var(--adapter) }
.curve.branch-1 { stroke:var(--accent) } .curve.branch-2 { stroke:var(--baseline) } .curve.branch-3 { stroke-dasharray:3 2 }
.mark.open { fill:var(--paper) } .iterations { fill:none; stroke-width:2; stroke:var(--baseline) }
@media print { body { max-width:none; padding:0 } }
`;
