/** The one stylesheet, served at `/style.css`: phone first, light and dark, no web fonts. */
export const stylesheet =
  `:root{color-scheme:light dark;--ink:#1d1b16;--paper:#fbf9f4;--quiet:#625c4e;
--line:#d9d2c1;--accent:#8a2b1a;--field:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#ece7db;--paper:#191814;--quiet:#aaa392;
--line:#403b31;--accent:#f0937e;--field:#22201b}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:46rem;background:var(--paper);color:var(--ink);
font:1.0625rem/1.55 Georgia,"Iowan Old Style",serif;overflow-wrap:anywhere}
header,footer,nav,label,legend,button,small,th,dt,.quiet{font-family:system-ui,sans-serif}
header{display:flex;gap:1rem;align-items:baseline;justify-content:space-between;
border-bottom:2px solid var(--accent);padding-bottom:.5rem}
header a{color:inherit;text-decoration:none;font-weight:700}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:.75rem 0;padding:0}
h1{font-size:1.6rem;line-height:1.2;margin:1.25rem 0 .75rem}
h2{font-size:1.2rem;margin:1.5rem 0 .5rem}
a{color:var(--accent)}
a:focus-visible,button:focus-visible,input:focus-visible,textarea:focus-visible,
select:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
dl{margin:.5rem 0}
dt{color:var(--quiet);font-size:.85rem;margin-top:.5rem}
dd{margin:0}
dd dl,dd ul{border-left:2px solid var(--line);padding-left:.75rem}
ol.entries,ul.entries{list-style:none;padding:0;margin:0}
.entries>li{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .75rem;margin:.75rem 0}
.entries p{margin:.2rem 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--line)}
th{font-size:.85rem;color:var(--quiet);overflow-wrap:normal}
.figures th,.figures td{white-space:nowrap}
.figures .wide{white-space:normal;min-width:8rem}
td .quiet{display:block;line-height:1.4}
.quiet time{white-space:nowrap}
@media(max-width:30rem){.stack thead{display:none}.stack td{display:block;padding:0}
.stack td:not(:last-child){border:0;padding-top:.6rem}.stack td:last-child{padding-bottom:.6rem}}
pre,code{font:.9rem/1.45 ui-monospace,monospace}
pre{white-space:pre-wrap}
blockquote{margin:1rem 0;padding-left:1rem;border-left:4px solid var(--accent);font-size:1.2rem}
fieldset{border:1px solid var(--line);border-radius:.4rem;margin:1rem 0;padding:.25rem 1rem}
legend{float:left;width:100%;font-weight:600;padding:.6rem 0 0;margin-bottom:.6rem}
legend+*{clear:both}
label{display:block;font-size:.9rem;font-weight:600;margin-bottom:.2rem}
.check label{display:inline}
input,textarea,select,button{font:inherit;color:inherit;padding:.55rem .65rem;border-radius:.3rem;
border:1px solid var(--quiet);background:var(--field)}
input:not([type=checkbox]),textarea,select{width:100%}
button{font-family:system-ui,sans-serif;background:var(--accent);border-color:var(--accent);
color:var(--paper);font-weight:600;min-height:2.75rem;cursor:pointer}
p>small{display:block;margin-top:.2rem}
small,.quiet{color:var(--quiet);font-size:.85rem}
footer{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.5rem;font-size:.85rem}
`
