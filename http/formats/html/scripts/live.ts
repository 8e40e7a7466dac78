/** The script of live pages. They also work without it. */
import { pageRefreshMs, pageStreamRefreshMs } from "../../../limits.ts"

export const liveScriptPath = "/live.js"

/**
 * `/live.js`: keeps the live parts of an open page (`livePart`) current. It reads the page again
 * after each event of the stream that a part names in `data-stream`; without a stream it checks the
 * page's entity tag at intervals. It replaces only the children of a part that have changed, so
 * that focus, selection, scroll positions and the announcements of `aria-live` remain. What has an
 * id in a `data-moving` element moves from where it was, if the stylesheet has a transition for it.
 * A `details` element with an id stays open.
 */
export const liveScript = `"use strict"
const state = document.getElementById("live")
if (state !== null) {
  const texts = {
    live: "This page changes by itself.",
    gone: "This is no longer here.",
    lost: "The connection is lost; trying again.",
    unknown: "Reload this page to see its current state."
  }
  let etag = ""
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const liveParts = () => [...document.querySelectorAll("[data-live]")]
  // The markup that the service sent: /page.js changes the times in it.
  const sources = new WeakMap()
  for (const part of liveParts()) {
    for (const node of part.children) sources.set(node, node.outerHTML)
  }
  const scrolled = (root) => [...root.querySelectorAll(".scroll")]
  const identityOf = (node) => JSON.stringify(
    [node.tagName, node.id, node.getAttribute("href"), node.form?.action, node.ariaLabel]
  )
  const isSelected = (part) => {
    const selection = getSelection()
    return selection !== null && !selection.isCollapsed && selection.containsNode(part, true)
  }
  const replaceChanged = (part, next) => {
    const unchanged = new Map([...part.children].map((node) => [sources.get(node), node]))
    const nodes = [...next.children].map((node) => {
      const source = node.outerHTML
      const same = unchanged.get(source) ?? node
      unchanged.delete(source)
      sources.set(same, source)
      return same
    })
    for (const node of [...part.children]) if (!nodes.includes(node)) node.remove()
    nodes.forEach((node, at) => {
      if (part.children[at] !== node) part.insertBefore(node, part.children[at] ?? null)
    })
  }
  const movingIn = (part) => [...part.querySelectorAll("[data-moving] [id]")]
  const placesIn = (part) =>
    new Map(movingIn(part).map((node) => [node.id, [node.offsetLeft, node.offsetTop]]))
  // A new node begins, without a transition, where the old one with its id was.
  const moveFrom = (places, part) => {
    const moved = movingIn(part).flatMap((node) => {
      const [left, top] = places.get(node.id) ?? []
      const x = left - node.offsetLeft
      const y = top - node.offsetTop
      return x || y ? [{ style: node.style, translate: x + "px " + y + "px" }] : []
    })
    if (moved.length === 0) return
    for (const { style, translate } of moved) {
      style.transition = "none"
      style.translate = translate
    }
    // The browser computes these places before it gets the new ones.
    part.getBoundingClientRect()
    for (const { style } of moved) style.transition = style.translate = ""
  }
  const updatePart = (part, next) => {
    const places = placesIn(part)
    const focused = part.contains(document.activeElement) ? document.activeElement : null
    const opened = [...part.querySelectorAll("details[open][id]")].map((one) => one.id)
    const lefts = scrolled(part).map((one) => one.scrollLeft)
    replaceChanged(part, next)
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "")
    moveFrom(places, part)
    scrolled(part).forEach((one, at) => one.scrollLeft = lefts[at] ?? 0)
    if (focused === null || document.activeElement === focused) return
    const identity = identityOf(focused)
    const same = [...part.querySelectorAll("*")].find((one) => identityOf(one) === identity)
    same?.focus({ preventScroll: true })
  }
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html")
    const parts = liveParts()
    if (parts.some((part) => page.getElementById(part.id) === null)) return false
    for (const part of parts) updatePart(part, page.getElementById(part.id))
    return true
  }
  const refresh = async () => {
    const headers = { Accept: "text/html", ...etag === "" ? {} : { "If-None-Match": etag } }
    const answer = await fetch(location.pathname + location.search, { headers, cache: "no-store" })
    if (answer.status === 410) return texts.gone
    if (answer.status === 304) return texts.live
    if (!answer.ok) return "The service answers " + answer.status + "; trying again."
    const text = await answer.text()
    // The reader may be about to copy the selection.
    if (liveParts().some(isSelected)) return
    if (!show(text)) return texts.unknown
    etag = answer.headers.get("ETag") ?? ""
    return texts.live
  }
  const stream = document.querySelector("[data-stream]")?.dataset.stream
  const source = stream === undefined ? undefined : new EventSource(stream)
  let isStale = false
  let isGone = false
  // An "error" is a lost connection; "open" follows it, and events may be missing between.
  for (const event of ["open", "error", "position", "notification", "changed", "status"]) {
    source?.addEventListener(event, () => { isStale = true })
  }
  // Another script of the page has changed what it shows.
  document.addEventListener("stale", () => { isStale = true })
  source?.addEventListener("gone", () => { isGone = true })
  const isPolled = () => source === undefined || source.readyState === EventSource.CLOSED
  const scheduleRefresh = (delayMs) => setTimeout(async () => {
    const isDue = document.visibilityState !== "hidden" && (isStale || isPolled())
    if (!isDue && !isGone) return scheduleRefresh(delayMs)
    isStale = false
    const text = isGone ? texts.gone : await refresh().catch(() => texts.lost)
    if (text !== undefined) say(text)
    if (text === texts.gone) return source?.close()
    const isCurrent = text === texts.live
    isStale ||= !isCurrent
    scheduleRefresh(isCurrent && !isPolled() ? ${pageStreamRefreshMs} : ${pageRefreshMs})
  }, delayMs)
  say(texts.live)
  scheduleRefresh(isPolled() ? ${pageRefreshMs} : ${pageStreamRefreshMs})
}
`
