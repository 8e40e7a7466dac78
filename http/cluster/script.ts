/** `/cluster.js`: with it an open page of the cluster changes by itself. */
import { pageRefreshMs } from "./limits.ts"

export const clusterScript = `"use strict"
const shown = document.getElementById("cluster")
const state = document.getElementById("live")
if (shown !== null && state !== null) {
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const scrolled = (root) => [...root.querySelectorAll(".scroll")]
  const show = (text) => {
    const next = new DOMParser().parseFromString(text, "text/html").getElementById("cluster")
    if (next === null) return say("Load this page again to see how it stands.")
    const focused = shown.contains(document.activeElement) ? document.activeElement.id : ""
    const lefts = scrolled(shown).map((one) => one.scrollLeft)
    shown.replaceChildren(...next.childNodes)
    scrolled(shown).forEach((one, at) => one.scrollLeft = lefts[at] ?? 0)
    if (focused !== "") document.getElementById(focused)?.focus({ preventScroll: true })
    say("This page changes by itself.")
  }
  const look = async () => {
    try {
      const headers = { Accept: "text/html" }
      const answer = await fetch(location.pathname, { headers, cache: "no-store" })
      if (answer.ok) show(await answer.text())
      else say("The service answers " + answer.status + "; trying again.")
    } catch {
      say("The connection is lost; trying again.")
    }
  }
  const goOn = () => setTimeout(async () => {
    if (document.visibilityState !== "hidden") await look()
    goOn()
  }, ${pageRefreshMs})
  say("This page changes by itself.")
  goOn()
}
`
