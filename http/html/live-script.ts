/**
 * `/live.js`: with it the parts of an open page that may change (`livePart`) are put in anew when
 * the service has another page at its address. What is focused, marked and scrolled stays.
 */
import { pageRefreshMs } from "../limits.ts"

export const liveScriptPath = "/live.js"

export const liveScript = `"use strict"
const state = document.getElementById("live")
if (state !== null) {
  let seen = ""
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const scrolled = (root) => [...root.querySelectorAll(".scroll")]
  const signOf = (node) => JSON.stringify(
    [node.tagName, node.id, node.getAttribute("href"), node.form?.action, node.ariaLabel]
  )
  const isMarked = (part) => {
    const marked = getSelection()
    return marked !== null && !marked.isCollapsed && marked.containsNode(part, true)
  }
  const put = (part, next) => {
    const focused = part.contains(document.activeElement)
      ? signOf(document.activeElement)
      : undefined
    const lefts = scrolled(part).map((one) => one.scrollLeft)
    part.replaceChildren(...next.childNodes)
    scrolled(part).forEach((one, at) => one.scrollLeft = lefts[at] ?? 0)
    if (focused === undefined) return
    const again = [...part.querySelectorAll("*")].find((one) => signOf(one) === focused)
    again?.focus({ preventScroll: true })
  }
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html")
    const parts = [...document.querySelectorAll("[data-live]")]
    if (parts.some((part) => page.getElementById(part.id) === null)) return false
    for (const part of parts) put(part, page.getElementById(part.id))
    return true
  }
  const look = async () => {
    const headers = { Accept: "text/html", ...seen === "" ? {} : { "If-None-Match": seen } }
    const answer = await fetch(location.pathname + location.search, { headers, cache: "no-store" })
    if (answer.status === 410) return "This is no longer here."
    if (!answer.ok && answer.status !== 304) {
      return "The service answers " + answer.status + "; trying again."
    }
    if (answer.status !== 304) {
      const text = await answer.text()
      // Who marks something is about to copy it.
      if ([...document.querySelectorAll("[data-live]")].some(isMarked)) return
      if (!show(text)) return "Load this page again to see how it stands."
      seen = answer.headers.get("ETag") ?? ""
    }
    return "This page changes by itself."
  }
  const goOn = () => setTimeout(async () => {
    if (document.visibilityState !== "hidden") {
      say(await look().catch(() => "The connection is lost; trying again.") ?? state.textContent)
    }
    goOn()
  }, ${pageRefreshMs})
  say("This page changes by itself.")
  goOn()
}
`
