/**
 * The stylesheet, served at `/style.css`: phone first, light and dark, one typeface. Its base is
 * modern-normalize; the rules here come after it, and none repeats it.
 */
import { normalizeRules } from "./packages/index.ts"
import { typefaceRule } from "./typeface.ts"

/**
 * The colors of both schemes: the first where a browser does not know `light-dark`. The contrast of
 * text is at least 4.5 (WCAG 1.4.3), and that of the edges of controls at least 3 (1.4.11).
 */
const colors = `:root{color-scheme:light dark;--ink:#1c1a17;--paper:#f7f6f3;--quiet:#5f5a52;
--line:#e3e0da;--edge:#8a847a;--accent:#96331c;--on-accent:#fff;--field:#fff;--raised:#f1efea;
--good:#1c6134;--wait:#74510a;--bad:#a01f1f}
@supports(color:light-dark(red,red)){:root{--ink:light-dark(#1c1a17,#eeebe6);
--paper:light-dark(#f7f6f3,#151413);--quiet:light-dark(#5f5a52,#aba59b);
--line:light-dark(#e3e0da,#34312d);--edge:light-dark(#8a847a,#837c73);
--accent:light-dark(#96331c,#f2997f);--on-accent:light-dark(#fff,#1d0f0a);
--field:light-dark(#fff,#1d1c1a);--raised:light-dark(#f1efea,#262421);
--good:light-dark(#1c6134,#7fcf98);--wait:light-dark(#74510a,#e3bb63);
--bad:light-dark(#a01f1f,#ff9d94)}}
:root[data-theme=light]{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}
`

/**
 * The steps of sizes, distances, corners and shadows. No other rule names a length of these kinds
 * (`test/house/stylesheet.test.ts`).
 */
const tokens = `:root{--text-xs:.75rem;--text-sm:.875rem;--text-md:1rem;--text-lg:1.2rem;
--text-xl:1.75rem;
--space-0:.125rem;--space-1:.25rem;--space-2:.5rem;--space-3:.75rem;--space-4:1rem;
--space-5:1.5rem;--space-6:2rem;--space-7:3rem;--page:30rem;
--radius-sm:.25rem;--radius-md:.5rem;--radius-lg:.75rem;--radius-full:62.5rem;
--shadow-1:0 1px 2px #0000000f,0 2px 8px #0000000a;--shadow-2:0 4px 24px #0000002e}
`

/** Text: font sizes of one scale (1.2), and the typeface, or one of the reader's own fonts. */
const text = `html{scroll-padding-top:var(--space-4)}
body{background:var(--paper);color:var(--ink);overflow-wrap:anywhere;
font:var(--text-md)/1.55 Inter,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main,footer{padding:0 max(var(--space-4),50% - var(--page))}
h1,h2,h3,.brand{letter-spacing:-.015em;font-weight:650}
h1{font-size:var(--text-xl);line-height:1.2;margin:var(--space-5) 0 var(--space-3)}
h2{font-size:var(--text-lg);line-height:1.3;margin:var(--space-6) 0 var(--space-2)}
h3{font-size:var(--text-md);line-height:1.3;margin:0 0 var(--space-1)}
p,dd,li,blockquote{max-width:42rem}
.lead{font-size:var(--text-lg)}
a,.tag{unicode-bidi:isolate}
a{color:var(--accent);text-underline-offset:.15em;text-decoration-thickness:1px}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
main:focus{outline:0}
small,.quiet,footer{color:var(--quiet);font-size:var(--text-sm)}
.quiet time,td time{white-space:nowrap}
pre,code,kbd,textarea.code{font:var(--text-sm)/1.5 ui-monospace,"Cascadia Mono",Menlo,monospace}
pre{white-space:pre-wrap;background:var(--raised);border-radius:var(--radius-md);
padding:var(--space-3) var(--space-4);
margin:var(--space-2) 0}
.message{background:var(--field);border:1px solid var(--line);box-shadow:var(--shadow-1)}
img.message{display:block;max-width:100%;height:auto;border-radius:var(--radius-md)}
blockquote{margin:var(--space-4) 0;padding-left:var(--space-4);border-left:4px solid var(--accent);
font-size:var(--text-lg)}
`

const frame = `.skip{position:absolute;left:1rem;top:-4rem;z-index:1;background:var(--accent);
color:var(--on-accent);padding:var(--space-2) var(--space-4);
border-radius:0 0 var(--radius-md) var(--radius-md)}
.skip:focus{top:0}
header{display:flex;flex-wrap:wrap;gap:0 var(--space-5);align-items:center;
justify-content:space-between;
background:var(--field);border-bottom:1px solid var(--line);padding-top:var(--space-2)}
.brand{color:inherit;text-decoration:none;font-weight:700;font-size:var(--text-lg);line-height:2rem}
nav ul{display:flex;flex-wrap:wrap;gap:0 var(--space-4);list-style:none;margin:0;padding:0}
nav a{display:inline-block;padding:var(--space-1) 0;min-width:1.5rem;font-size:var(--text-sm)}
header nav a,footer nav a{color:var(--quiet)}
header nav a:not(:hover),footer nav a:not(:hover){text-decoration:none}
header nav a[aria-current],footer nav a[aria-current]{font-weight:600;color:var(--ink)}
header nav a[aria-current]{box-shadow:inset 0 -2px var(--accent)}
header nav{width:100%}header nav a{padding:var(--space-2) 0}
.reader{display:flex;gap:var(--space-3);align-items:center;min-height:2rem;font-size:var(--text-sm)}
.reader a{padding:var(--space-1) 0;text-decoration:none;color:var(--ink)}
.reader a:hover{text-decoration:underline}
.reader a[aria-current]{font-weight:700}.reader a[title]{font-weight:600;max-width:14rem;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
main nav{margin:var(--space-4) 0}
nav a[rel=next]::after{content:" \\2192"}
nav a[rel=up]::before{content:"\\2190\\a0"}
.icon{width:1em;height:1em;margin-right:var(--space-1);vertical-align:-.125em;fill:none;
stroke:currentColor;
stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
@media(max-width:52rem){header .icon{display:none}
header nav ul{flex-wrap:nowrap;overflow-x:auto;scrollbar-width:none;
margin:0 calc(-1*var(--space-4));
padding:0 var(--space-7) 0 var(--space-4);scroll-padding:0 var(--space-7);
mask-image:linear-gradient(90deg,transparent,#000 1rem,#000 calc(100% - 2.5rem),transparent)}
header nav a{white-space:nowrap;outline-offset:-3px}
header nav a[aria-current]{scroll-initial-target:nearest}}
@media(hover:none){button.keys{display:none}}
footer{margin-top:var(--space-7);border-top:1px solid var(--line);padding-top:var(--space-2);
padding-bottom:var(--space-4)}
`

const lists = `dl{margin:var(--space-2) 0}
dt{color:var(--quiet);font-size:var(--text-sm);margin-top:var(--space-2)}
dd{margin:0}
dd dl,dd ul{border-left:2px solid var(--line);padding-left:var(--space-3)}
@media(min-width:40rem){dl.facts{display:grid;grid-template-columns:minmax(9rem,auto) 1fr;
gap:var(--space-1) var(--space-5)}.facts dt{margin:0;padding-top:var(--space-0)}}
ol.entries,ul.entries{list-style:none;padding:0;margin:0}
ol.entries:not(:empty),ul.entries:not(:empty){background:var(--field);border:1px solid var(--line);
border-radius:var(--radius-lg);box-shadow:var(--shadow-1)}
.entries>li{max-width:none;padding:var(--space-3) var(--space-4);display:grid;
grid-template-columns:1fr auto;
gap:0 var(--space-4);align-items:center}
.entries>li[hidden]{display:none}
.entries>li:not([hidden])~li{border-top:1px solid var(--line)}
ol.entries:not(:has(>li:not([hidden]))){border:0;box-shadow:none}
.entries>li>*{grid-column:1}
.entries>li:has(>p>a:focus-visible){box-shadow:inset 3px 0 var(--accent)}
.entries>li>form{grid-area:1/2/4/3}
.entries p{margin:var(--space-0) 0;max-width:none}
.entries>li>.preview{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;
overflow:hidden;font-size:var(--text-sm);line-height:1.45;max-width:42rem}
.entries>li>p:first-child{font-weight:600}
.actions{display:flex;flex-wrap:wrap;gap:var(--space-2);margin:var(--space-4) 0}
.entries>.read>p:first-child{font-weight:400}.entries b{color:var(--accent);
white-space:nowrap}
.entries button.small:not(:hover),[data-copy]+button.small:not(:hover){border-color:transparent;
color:var(--quiet)}
[data-copy]+button.small{padding:0 var(--space-1)}
.entries>li>p:first-child>a:not(:hover){text-decoration:none}
.entries>li>p:first-child>a{color:var(--ink)}
.find{display:flex;flex-wrap:wrap;gap:var(--space-1) var(--space-4);justify-content:space-between;
margin:var(--space-2) 0}
.find p{margin:0;min-width:0;display:flex;gap:var(--space-2);align-items:center}
.find .choices{flex-wrap:wrap;gap:0 var(--space-2);max-width:24rem}.choices small{flex-basis:100%;
margin:0}
.find input[type=search]{min-height:2.25rem;padding:var(--space-1) var(--space-3);width:auto;
max-width:14rem;
flex:1 1 6rem;min-width:0}
.choices a,.choices b{display:inline-block;padding:var(--space-0) var(--space-2);
margin:0 var(--space-0) var(--space-1) 0;
border:1px solid var(--line);border-radius:var(--radius-full);font-size:var(--text-md)}
.choices b{border-color:var(--accent)}.choices button.small{margin-bottom:var(--space-1)}
.empty{border:1px dashed var(--edge);border-radius:var(--radius-lg);
padding:var(--space-3) var(--space-4)}
.steps{list-style:none;counter-reset:step;padding:0;margin:var(--space-4) 0}
.steps>li{counter-increment:step;max-width:none;position:relative;
padding:0 0 var(--space-5) var(--space-7)}
.steps>li::before{content:counter(step);position:absolute;left:0;top:-.15rem;width:1.9rem;
height:1.9rem;border-radius:var(--radius-full);background:var(--accent);color:var(--on-accent);
font-weight:700;
line-height:1.9rem;text-align:center}
.steps>li:not(:last-child)::after{content:"";position:absolute;left:.9rem;top:2.1rem;bottom:.4rem;
border-left:2px solid var(--line)}
.steps p{margin:var(--space-1) 0}
.notice>p{position:fixed;z-index:2;left:1rem;right:1rem;bottom:1rem;margin:0 auto;
width:fit-content;max-width:min(34rem,100% - 2rem);padding:var(--space-2) var(--space-4);
border-radius:var(--radius-lg);
background:var(--ink);color:var(--paper);box-shadow:var(--shadow-2)}
.notice button.small,.notice button.small:hover{background:none;color:inherit;
margin-left:var(--space-3);
border-color:currentColor}
.notice :focus-visible{outline-color:currentColor}
dialog{max-width:min(26rem,100% - 2rem);padding:var(--space-1) var(--space-5) var(--space-2);
border-radius:var(--radius-lg);
border:1px solid var(--edge);background:var(--paper);color:var(--ink)}
dialog::backdrop{background:#0008}
dialog h2{margin:var(--space-3) 0}
dl.keys{display:grid;grid-template-columns:auto 1fr;gap:var(--space-1) var(--space-5)}
.keys dt{margin:0}
kbd{border:1px solid var(--edge);
border-radius:var(--radius-sm);
padding:var(--space-0) var(--space-2);color:var(--ink);white-space:nowrap}
@media(max-width:30rem){.steps>li{padding-left:0}.steps>li::before{top:0}
.steps>li::after{display:none}.steps h3{padding:var(--space-1) 0 var(--space-1) var(--space-7)}}
`

const tables = `.scroll{overflow-x:auto;margin:var(--space-2) 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:var(--space-2) var(--space-3) var(--space-2) 0;
border-bottom:1px solid var(--line)}
thead th{font-size:var(--text-sm);color:var(--quiet);overflow-wrap:normal;vertical-align:bottom}
tbody th{font-weight:600}
.num{text-align:right;white-space:nowrap}
td.nowrap{white-space:nowrap}
td.num+:not(.num),th.num+:not(.num){padding-left:var(--space-5)}
.rows th,.rows td{min-width:5.75rem}.rows thead th{overflow-wrap:break-word}
.rows .num{min-width:0}
.figures th,.figures td{white-space:nowrap}
.figures .wide,.figures .quiet{white-space:normal;min-width:8rem}
.figures td time{white-space:nowrap}
td .quiet{display:block;line-height:1.45}
@media(max-width:48rem){td time{white-space:normal;overflow-wrap:normal}}
@media(max-width:30rem){.stack thead{display:none}.stack td{display:block;padding:0}
.stack td:not(:last-child){border:0;padding-top:var(--space-2)}
.stack td:last-child{padding:var(--space-1) 0 var(--space-2)}
.cards thead,.cards td:empty{display:none}.cards table,.cards tr,.cards th,.cards td{display:block}
.cards tbody{display:block;background:var(--field);border:1px solid var(--line);
border-radius:var(--radius-lg);box-shadow:var(--shadow-1)}
.cards tr{padding:var(--space-3) var(--space-4)}
.cards tr:not(:first-child){border-top:1px solid var(--line)}
.cards tr>*{border:0;padding:var(--space-0) 0;text-align:left;white-space:normal}
.cards tr>[data-label]{padding-left:calc(2*var(--space-7));position:relative}
.cards [data-label]::before{content:attr(data-label);position:absolute;left:0;color:var(--quiet);
font-size:var(--text-sm)}
.cards tr>[data-label]:has(>form){padding:var(--space-2) 0 0}
.cards [data-label]:has(>form)::before{content:none}}
@media(min-width:30.01rem){.cards th time{font-weight:400;white-space:nowrap}}
.filter,.filter:hover{color:inherit;text-decoration:none}
.filter:hover .tag,.filter:focus-visible .tag{border-color:currentColor}
.tag{border:1px solid var(--line);border-radius:var(--radius-sm);padding:0 var(--space-1)}
.badge{display:inline-block;border:1px solid;border-radius:var(--radius-full);
padding:0 var(--space-2);font-size:var(--text-sm);
font-weight:600;white-space:nowrap}
.good{color:var(--good)}.wait{color:var(--wait)}.bad{color:var(--bad)}
`

const charts = `.charts{display:grid;gap:.75rem;
grid-template-columns:repeat(auto-fill,minmax(min(18rem,100%),1fr))}
.chart{display:flex;flex-direction:column;margin:0;padding:.6rem .9rem .8rem;
background:var(--field);border:1px solid var(--line);border-radius:.6rem;box-shadow:var(--shadow-1);
font-variant-numeric:tabular-nums}
.chart figcaption b{display:block;font-size:.875rem}.chart .quiet{float:right;line-height:1.75}
.plot{display:flex;gap:var(--space-2);margin-top:auto;padding-top:var(--space-3)}
.plot svg{flex:1;min-width:0;height:6rem}
.axis,.times{display:flex;justify-content:space-between;margin:0;color:var(--quiet);
font-size:var(--text-xs);line-height:1}
.axis{flex-direction:column;text-align:right;min-width:3.5rem;margin:calc(-1*var(--space-1)) 0}
.times{width:calc(100% - 4rem);margin-left:auto;padding-top:var(--space-2)}
.grid{fill:none;stroke:var(--line)}
.drawn{fill:var(--quiet);stroke:var(--accent);stop-color:var(--line)}
.drawn .plot{display:block;height:8.25rem;padding-top:var(--space-1)}
.drawn+div>.charts{display:none}
.drawn .u-cursor-x{border-right:1px dashed var(--quiet)}
.line{fill:none;stroke:var(--accent);stroke-width:1.75;stroke-linecap:round}
.line.minor{stroke:var(--quiet);stroke-width:1.25}
.share{display:block;width:100%;max-width:14rem;height:.5rem;margin:.35rem 0}
.num>.share{width:5rem;margin-left:auto}
.share .line{stroke-width:1rem;stroke-linecap:butt}.share .minor{stroke:var(--line)}
`

/**
 * The map of shards. The colors of nodes have enough contrast with white letters (WCAG 1.4.3) and
 * with light and dark paper (1.4.11). `/live.js` sets `translate`, and takes it away again.
 */
const shards = `.shards{list-style:none;padding:0;margin:var(--space-3) 0;display:grid;
gap:var(--space-3);
grid-template-columns:repeat(auto-fit,minmax(min(17rem,100%),1fr));position:relative}
.shards>li{max-width:none;padding:var(--space-2) var(--space-3) var(--space-3);
background:var(--field);
border:1px solid var(--line);border-radius:var(--radius-lg);box-shadow:var(--shadow-1)}
.shards p{margin:0 0 var(--space-2)}.shards small{margin-left:var(--space-1)}
.cells{display:grid;grid-template-columns:repeat(auto-fill,minmax(1.2rem,1fr));gap:var(--space-0)}
.cell{display:inline-block;min-width:1.2rem;text-align:center;color:#fff;
font:600 var(--text-xs)/1.5 system-ui,sans-serif;border:1px solid transparent;
border-radius:var(--radius-sm)}
.n0{background:#0072b2}.n1{background:#c2410c}.n2{background:#00795a}.n3{background:#8e5bb5}
.n4{background:#8a6d00}.n5{background:#c0397f}.n6{background:#4d7c0f}.n7{background:#0e7490}
.cell.handoff,.cell.none{background:none;color:var(--ink);border:1px dashed}
.cell.none{color:var(--bad)}.cell:target{outline:3px solid var(--accent);outline-offset:1px}
@media(prefers-reduced-motion:no-preference){.cells>.cell{transition:translate .5s ease}}
`

const forms = `fieldset{border:1px solid var(--line);border-radius:var(--radius-lg);
margin:var(--space-4) 0;min-width:0;
padding:var(--space-1) var(--space-4) var(--space-2);background:var(--field);
box-shadow:var(--shadow-1);
display:grid;grid-template-columns:1fr;gap:0 var(--space-4)}
legend{float:left;width:100%;font-weight:650;padding:var(--space-2) 0 var(--space-1);
grid-column:1/-1}
legend+*{clear:both}
fieldset p{margin:var(--space-2) 0;max-width:none}
@media(min-width:40rem){fieldset{grid-template-columns:repeat(6,1fr)}fieldset>*{grid-column:1/-1}
fieldset>.third{grid-column:span 2}fieldset>.half{grid-column:span 3}}
label{display:block;font-size:var(--text-sm);font-weight:600;margin-bottom:var(--space-1)}
.check{display:grid;grid-template-columns:auto 1fr;gap:0 var(--space-2)}
.check label{margin:0}.check small{grid-column:2}
input,textarea,select,button{font:inherit;color:inherit;padding:var(--space-2) var(--space-3);
border-radius:var(--radius-md);
border:1px solid var(--edge);background:var(--field)}
input:not([type=checkbox]),textarea,select{width:100%;min-height:2.75rem}
input[type=checkbox]{width:1.25rem;height:1.25rem;vertical-align:-.2rem;accent-color:var(--accent)}
.chips{display:flex;flex-wrap:wrap;gap:var(--space-1);margin-bottom:var(--space-2)}
.chips:empty{display:none}
.chip{display:inline-flex;align-items:center;gap:var(--space-2);max-width:100%;
border-radius:var(--radius-full);
padding:var(--space-0) var(--space-1) var(--space-0) var(--space-3);border:1px solid var(--edge);
background:var(--raised);
font-size:var(--text-sm);line-height:1.4}
.chip span{min-width:0}.chip .fault{display:block}
.chip button.small{min-height:1.6rem;min-width:1.6rem;padding:0;border-color:transparent;
border-radius:var(--radius-full);line-height:1}
[aria-invalid=true]{border:2px solid var(--bad)}
.fault{color:var(--bad);font-weight:600}
.saved{color:var(--wait);font-weight:600;white-space:pre-wrap}
.alarm{border-left:4px solid var(--bad);padding:var(--space-1) 0 var(--space-1) var(--space-3)}
button{background:var(--accent);border-color:var(--accent);color:var(--on-accent);font-weight:600;
min-height:2.75rem;padding:var(--space-2) var(--space-4);cursor:pointer}
[aria-disabled=true]{opacity:.65;cursor:progress}
[aria-busy=true]:not(button){opacity:.5}
button[aria-busy=true]::after{content:"";display:inline-block;width:1em;height:1em;
margin-left:var(--space-2);vertical-align:-.05em;border:2px solid;border-top-color:transparent;
border-radius:var(--radius-full)}
@media(prefers-reduced-motion:no-preference){
button[aria-busy=true]::after{animation:turn .8s linear infinite}}
@keyframes turn{to{rotate:1turn}}
button:hover{filter:brightness(1.12)}
button.small,button.danger,button.secondary{background:transparent;color:var(--ink);
border-color:var(--edge)}
button.small{white-space:nowrap;min-height:1.9rem;padding:var(--space-0) var(--space-3);
font-size:var(--text-sm);
font-weight:500}
button.small:hover,button.danger:hover,button.secondary:hover{background:var(--raised);filter:none}
button+a{margin-left:var(--space-3)}
button.danger:hover{color:var(--bad);border-color:var(--bad)}
fieldset.danger{background:transparent;border-style:dashed;box-shadow:none}
p>small{display:block;margin-top:var(--space-1)}
details{margin:var(--space-3) 0}
summary{cursor:pointer;padding:var(--space-2) 0;font-weight:600;width:fit-content}
summary:hover{color:var(--accent)}
details[open]>summary{margin-bottom:var(--space-1)}
.rare{border:1px solid var(--line);border-radius:var(--radius-lg);margin:var(--space-4) 0;
background:var(--field);
box-shadow:var(--shadow-1)}
.rare>summary{padding:var(--space-2) var(--space-4);width:auto}
.rare fieldset{border:0;box-shadow:none;margin:0;padding-top:0}
`

/** The documentation: the list of all pages, colors of code, and those of pictures. */
const documentation = `.docs nav ul{display:block}.docs article h3{margin-top:var(--space-5)}
.docs section,.docs article{margin-bottom:var(--space-6)}
.contents p{margin:var(--space-4) 0 var(--space-0);font-size:var(--text-sm);color:var(--quiet)}
.contents a{padding:var(--space-0) 0}.contents a:not(:hover){text-decoration:none}
.contents a[aria-current]{font-weight:650;color:var(--ink)}
.toc .inner{padding-left:var(--space-4)}.source{color:var(--quiet);font-size:var(--text-sm)}
@media(min-width:56rem){.docs{display:grid;grid-template-columns:minmax(0,1fr) 14rem;
gap:0 var(--space-7)}
.contents{position:sticky;top:1rem;max-height:calc(100vh - 2rem);overflow-y:auto;align-self:start;
border-left:1px solid var(--line);padding-left:var(--space-4)}}
mark{background:none;color:var(--accent);font-weight:650}
.hljs-comment,.hljs-meta,.hljs-quote,.hljs-punctuation{color:var(--quiet)}
.hljs-keyword,.hljs-name,.hljs-tag,.hljs-section,.hljs-selector-tag{color:var(--accent)}
.hljs-string,.hljs-regexp,.hljs-addition{color:var(--good)}
.hljs-number,.hljs-literal,.hljs-attr,.hljs-attribute,.hljs-variable{color:var(--wait)}
.shot{display:block;max-width:100%;height:auto;margin:var(--space-4) 0;border:1px solid var(--line);
border-radius:var(--radius-lg)}#found-count:empty{margin:0}.drawing{display:block;overflow-x:auto}
.picture{display:block;width:100%;min-width:40rem;height:auto}
.picture text{fill:var(--ink)}.picture .q{fill:var(--quiet);font-size:12px}
.picture .n{fill:var(--good);font-weight:600}.picture .h{fill:var(--quiet)}
.picture .l{stroke:var(--quiet);fill:none;stroke-width:1.5}
.picture .f{stroke:var(--good);stroke-width:3}
.picture .box,.picture .g{fill:var(--raised);stroke:var(--quiet)}
.picture .g,.picture .d{stroke-dasharray:4 3}
.picture .own,.picture .b{fill:var(--field);stroke:var(--good)}
.picture .a{fill:var(--field);stroke:var(--accent)}
.picture .bad{fill:var(--field);stroke:var(--bad)}
.picture .before{fill:var(--bad);opacity:.12}.picture .after{fill:var(--good);opacity:.12}
`

const others = `@media(prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@media(forced-colors:active){.badge,.entries>li,fieldset{border-color:CanvasText}}
@media print{:root,:root[data-theme]{color-scheme:light}body{color:#000;background:#fff}
header nav,main nav,footer,form,.skip,[role=status]{display:none}
a{color:inherit}.scroll{overflow:visible}.entries>li,tr{break-inside:avoid}}
`

/** The whole stylesheet. */
export const stylesheet = normalizeRules + typefaceRule + colors + tokens + text + frame + lists +
  tables + charts + shards + forms + documentation + others
