/** The stylesheet, served at `/style.css`: phone first, light and dark, no web fonts. */

/** The contrast of text is at least 4.5 (WCAG 1.4.3), in both schemes. */
const colors = `:root{color-scheme:light dark;--ink:#1d1b16;--paper:#fbf9f4;--quiet:#5d5748;
--line:#d9d2c1;--edge:#837c6b;--accent:#8a2b1a;--field:#fff;--raised:#f3efe5;
--good:#1c6134;--wait:#74510a;--bad:#a01f1f}
@media(prefers-color-scheme:dark){:root{--ink:#ece7db;--paper:#191814;--quiet:#b2ab9a;
--line:#403b31;--edge:#8b8371;--accent:#f0937e;--field:#22201b;--raised:#23211b;
--good:#7fcf98;--wait:#e3bb63;--bad:#ff9d94}}
`

/** Text: font sizes of one scale (1.2), headings with serifs. */
const text = `*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0 auto;padding:0 1rem 1rem;max-width:52rem;background:var(--paper);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:anywhere}
h1,h2,h3,.brand,blockquote{font-family:Charter,"Bitstream Charter","Sitka Text",Cambria,
Georgia,serif}
h1{font-size:1.75rem;line-height:1.2;margin:1.5rem 0 .75rem}
h2{font-size:1.35rem;line-height:1.25;margin:2rem 0 .5rem}
h3{font-size:1.13rem;line-height:1.3;margin:0 0 .35rem}
p,dd,li,blockquote{max-width:42rem}
.lead{font-size:1.15rem}
a{color:var(--accent);text-underline-offset:.15em}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
main:focus{outline:0}
small,.quiet,footer{color:var(--quiet);font-size:.875rem}
.quiet time,td time{white-space:nowrap}
pre,code{font:.9rem/1.5 ui-monospace,"Cascadia Mono",Menlo,monospace}
pre{white-space:pre-wrap;background:var(--raised);border-radius:.4rem;padding:.6rem .75rem;
margin:.5rem 0}
blockquote{margin:1rem 0;padding-left:1rem;border-left:4px solid var(--accent);font-size:1.25rem}
`

const frame = `.skip{position:absolute;left:1rem;top:-4rem;z-index:1;background:var(--accent);
color:var(--paper);padding:.6rem .9rem;border-radius:0 0 .4rem .4rem}
.skip:focus{top:0}
header{display:flex;flex-wrap:wrap;gap:0 1.5rem;align-items:center;justify-content:space-between;
border-bottom:2px solid var(--accent);padding:.5rem 0}
.brand{color:inherit;text-decoration:none;font-weight:700;font-size:1.35rem;line-height:2rem}
nav ul{display:flex;flex-wrap:wrap;gap:0 1.1rem;list-style:none;margin:0;padding:0}
nav a{display:inline-block;padding:.3rem 0;min-width:1.5rem;font-size:.95rem}
header nav a:not(:hover),footer nav a:not(:hover){text-decoration:none}
header nav a[aria-current],footer nav a[aria-current]{font-weight:700;
box-shadow:inset 0 -2px currentcolor}
header nav{width:100%}
.reader{display:flex;gap:.75rem;align-items:center;min-height:2rem;font-size:.95rem}
.reader a{padding:.3rem 0;text-decoration:none}.reader a:hover{text-decoration:underline}
.reader a[aria-current]{font-weight:700}.reader a[title]{font-weight:600;max-width:14rem;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
main nav{margin:1rem 0}
nav a[rel=next]::after{content:" \\2192"}
nav a[rel=up]::before{content:"\\2191\\a0"}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.5rem}
`

const lists = `dl{margin:.5rem 0}
dt{color:var(--quiet);font-size:.875rem;margin-top:.5rem}
dd{margin:0}
dd dl,dd ul{border-left:2px solid var(--line);padding-left:.75rem}
@media(min-width:40rem){dl.facts{display:grid;grid-template-columns:minmax(9rem,auto) 1fr;
gap:.35rem 1.25rem}.facts dt{margin:0;padding-top:.1rem}}
ol.entries,ul.entries{list-style:none;padding:0;margin:0}
.entries>li{max-width:none;border:1px solid var(--line);border-radius:.4rem;padding:.6rem .85rem;
margin:.6rem 0;background:var(--field)}
.entries p{margin:.2rem 0;max-width:none}
.entries>li>p:first-child{font-size:1.06rem}
.entries form{margin:.35rem 0 0}
.choices a,.choices b{display:inline-block;padding:.15rem .6rem;margin:0 .15rem .3rem 0;
border:1px solid var(--line);border-radius:1rem;font-size:.95rem}
.choices b{border-color:var(--accent)}
.empty{border:1px dashed var(--edge);border-radius:.4rem;padding:.75rem 1rem}
.steps{list-style:none;counter-reset:step;padding:0;margin:1rem 0}
.steps>li{counter-increment:step;max-width:none;position:relative;padding:0 0 1.25rem 2.75rem}
.steps>li::before{content:counter(step);position:absolute;left:0;top:-.15rem;width:1.9rem;
height:1.9rem;border-radius:50%;background:var(--accent);color:var(--paper);font-weight:700;
line-height:1.9rem;text-align:center}
.steps>li:not(:last-child)::after{content:"";position:absolute;left:.9rem;top:2.1rem;bottom:.4rem;
border-left:2px solid var(--line)}
.steps p{margin:.35rem 0}
@media(max-width:30rem){.steps>li{padding-left:0}.steps>li::before{top:0}
.steps>li::after{display:none}.steps h3{padding:.25rem 0 .35rem 2.5rem}}
`

const tables = `.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.45rem .75rem .45rem 0;
border-bottom:1px solid var(--line)}
thead th{font-size:.875rem;color:var(--quiet);overflow-wrap:normal;vertical-align:bottom}
tbody th{font-weight:600}
.num{text-align:right;white-space:nowrap}
td.nowrap{white-space:nowrap}
td.num+:not(.num),th.num+:not(.num){padding-left:1.25rem}
.rows th,.rows td{min-width:5rem}.rows thead th{overflow-wrap:break-word}
.rows .num{min-width:0}
.figures th,.figures td{white-space:nowrap}
.figures .wide,.figures .quiet{white-space:normal;min-width:8rem}
td .quiet{display:block;line-height:1.45}
@media(max-width:30rem){td time{white-space:normal}
.stack thead{display:none}.stack td{display:block;padding:0}
.stack td:not(:last-child){border:0;padding-top:.6rem}.stack td:last-child{padding-bottom:.6rem}}
.badge{display:inline-block;border:1px solid;border-radius:1rem;padding:0 .6rem;font-size:.9rem;
font-weight:600;white-space:nowrap}
.good{color:var(--good)}.wait{color:var(--wait)}.bad{color:var(--bad)}
`

const forms = `fieldset{border:1px solid var(--line);border-radius:.4rem;margin:1rem 0;min-width:0;
padding:.25rem 1rem .5rem;background:var(--raised);
display:grid;grid-template-columns:1fr;gap:0 1rem}
legend{float:left;width:100%;font-weight:650;padding:.6rem 0 .2rem;grid-column:1/-1}
legend+*{clear:both}
fieldset p{margin:.5rem 0;max-width:none}
@media(min-width:40rem){fieldset{grid-template-columns:repeat(6,1fr)}fieldset>*{grid-column:1/-1}
fieldset>.third{grid-column:span 2}fieldset>.half{grid-column:span 3}}
label{display:block;font-size:.925rem;font-weight:600;margin-bottom:.2rem}
.check label{display:inline}
input,textarea,select,button{font:inherit;color:inherit;padding:.5rem .65rem;border-radius:.3rem;
border:1px solid var(--edge);background:var(--field)}
input:not([type=checkbox]),textarea,select{width:100%;min-height:2.75rem}
input[type=checkbox]{width:1.25rem;height:1.25rem;vertical-align:-.2rem;accent-color:var(--accent)}
textarea.code{font:.9rem/1.5 ui-monospace,Menlo,monospace}
[aria-invalid=true]{border:2px solid var(--bad)}
.fault{color:var(--bad);font-weight:600}
.alarm{border-left:4px solid var(--bad);padding:.25rem 0 .25rem .85rem}
button{background:var(--accent);border-color:var(--accent);color:var(--paper);font-weight:600;
min-height:2.75rem;padding:.5rem 1.1rem;cursor:pointer}
button:hover{filter:brightness(1.12)}
button.small,button.danger{background:transparent;color:var(--accent)}
button.small{white-space:nowrap;min-height:1.9rem;padding:.1rem .7rem;font-size:.875rem}
fieldset.danger{background:transparent;border-style:dashed}
p>small{display:block;margin-top:.25rem}
details{margin:.75rem 0}
summary{cursor:pointer;padding:.35rem 0;font-weight:600}
`

const others = `@media(prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@media(forced-colors:active){.badge,.entries>li,fieldset{border-color:CanvasText}}
@media print{:root{color-scheme:light}body{max-width:none;color:#000;background:#fff}
header nav,main nav,footer,form,.skip,[role=status]{display:none}
a{color:inherit}.scroll{overflow:visible}.entries>li,tr{break-inside:avoid}}
`

/** The whole stylesheet. */
export const stylesheet = colors + text + frame + lists + tables + forms + others
