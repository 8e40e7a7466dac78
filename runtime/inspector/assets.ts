/** The style, the script and the icon of the inspector's pages. */

/** The contrast of text is at least 4.5 in both color schemes (WCAG 1.4.3). */
export const style = `:root{color-scheme:light dark;--ink:#1c1a17;--paper:#f7f6f3;--quiet:#5f5a52;
--line:#e3e0da;--edge:#8a847a;--accent:#96331c;--raised:#f1efea;--good:#1c6134;--wait:#74510a;
--bad:#a01f1f;--mark:#fbe7b0}
@media(prefers-color-scheme:dark){:root{--ink:#eeebe6;--paper:#151413;--quiet:#aba59b;
--line:#34312d;--edge:#837c73;--accent:#f2997f;--raised:#262421;--good:#7fcf98;--wait:#e3bb63;
--bad:#ff9d94;--mark:#57431a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif;
color:var(--ink);background:var(--paper)}
header{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;
justify-content:space-between;border-bottom:1px solid var(--line);padding:.5rem 0}
header p{margin:0}
nav a{display:inline-block;padding:.25rem 0;margin-right:1rem}
a{color:var(--accent)}
a:focus-visible,button:focus-visible,input:focus-visible,[tabindex]:focus-visible{
outline:2px solid var(--accent);outline-offset:2px}
main:focus{outline:none}
h1{font-size:1.5rem;overflow-wrap:anywhere;margin:1rem 0 .5rem}
h2{font-size:1.1rem;margin:1.5rem 0 .5rem}
p{margin:.25rem 0}
code,pre{font:.875rem/1.5 ui-monospace,monospace}
code{overflow-wrap:anywhere}
pre{background:var(--raised);border:1px solid var(--line);border-radius:.5rem;padding:.75rem;
margin:0;overflow:auto;max-height:70vh}
mark{background:var(--mark);color:inherit}
dl{margin:.75rem 0}
dl div{display:grid;grid-template-columns:minmax(7rem,25%) 1fr;gap:1rem;padding:.25rem 0;
border-bottom:1px solid var(--line)}
dt,.quiet,footer{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere}
.rows{list-style:none;margin:0;padding:0}
.rows li{border-bottom:1px solid var(--line);padding:.375rem 0;overflow-wrap:anywhere}
.rows time,.rows .quiet{font-size:.875rem;color:var(--quiet)}
.inline{list-style:none;margin:.5rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1rem}
.steps{gap:.25rem .5rem}
.steps a,.steps span,button{display:inline-block;min-width:3.5rem;text-align:center;margin:0;
padding:.375rem .5rem;border:1px solid var(--edge);border-radius:.375rem;text-decoration:none;
font:inherit;color:var(--ink);background:transparent}
.steps span{color:var(--quiet);border-color:var(--line)}
[aria-current]{display:inline-block;font-weight:bold;padding:.25rem 0;margin-right:1rem}
input{font:inherit;color:inherit;background:transparent;border:1px solid var(--edge);
border-radius:.375rem;padding:.375rem .5rem;max-width:100%}
.good{color:var(--good)}.wait{color:var(--wait)}.bad{color:var(--bad)}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
footer{border-top:1px solid var(--line);margin:2rem 0 1rem;padding-top:.5rem;font-size:.875rem}
`

/** How often the script reads an open page again, ms. */
const refreshMs = 1_000

/**
 * Reads the page again at intervals, and shows it where it has changed: not while the reader has
 * text selected, and not after "Pause". The keys ← and → step through time.
 */
export const script = `"use strict"
{
  const live = document.getElementById("live")
  const main = document.getElementById("main")
  let isPaused = false
  const identityOf = (one) => one?.getAttribute("href") ?? one?.getAttribute("aria-label")
  const show = (text) => {
    const next = new DOMParser().parseFromString(text, "text/html").getElementById("main")
    if (next === null || next.innerHTML === main.innerHTML) return
    const active = document.activeElement
    const focused = main.contains(active) ? identityOf(active) : null
    const scrolled = [...main.querySelectorAll("pre")]
      .map((one) => [one.scrollTop, one.scrollLeft])
    main.replaceChildren(...next.childNodes)
    main.querySelectorAll("pre").forEach((one, at) => {
      const [top = 0, left = 0] = scrolled[at] ?? []
      one.scrollTop = top
      one.scrollLeft = left
    })
    const again = [...main.querySelectorAll("a,pre")]
      .find((one) => focused !== null && identityOf(one) === focused)
    again?.focus({ preventScroll: true })
  }
  const refresh = async () => {
    const isSelecting = getSelection()?.isCollapsed === false
    if (!isPaused && !isSelecting && document.visibilityState === "visible") {
      const answer = await fetch(location.pathname + location.search).catch(() => undefined)
      if (answer?.ok) show(await answer.text())
      text.textContent = answer === undefined ? "The program does not answer. " : ""
    }
    setTimeout(refresh, ${refreshMs})
  }
  const text = document.createElement("span")
  if (live?.dataset.live === "true") {
    const button = document.createElement("button")
    button.textContent = "Pause"
    button.ariaPressed = "false"
    button.addEventListener("click", () => {
      isPaused = !isPaused
      button.ariaPressed = String(isPaused)
    })
    text.role = "status"
    live.append(text, button)
    live.hidden = false
    setTimeout(refresh, ${refreshMs})
  }
  addEventListener("keydown", (event) => {
    const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey
    const isElsewhere = event.target.closest("input,pre") !== null
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key]
    if (isPlain && !isElsewhere && rel !== undefined) {
      document.querySelector(".steps a[rel=" + rel + "]")?.click()
    }
  })
}
`

export const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="7" cy="7" r="5" ` +
  `fill="none" stroke="#96331c" stroke-width="2"/><path d="m11 11 4 4" stroke="#96331c" ` +
  `stroke-width="2"/></svg>\n`
