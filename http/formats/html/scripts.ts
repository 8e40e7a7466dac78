/** The scripts of pages. Every page also works without them. */
import { pageRefreshMs, pageStreamRefreshMs, relativeTimesMs } from "../../limits.ts"

export const liveScriptPath = "/live.js"

/**
 * `/live.js`: keeps the live parts of an open page (`livePart`) current. It reads the page again
 * after each event of the stream that a part names in `data-stream`; without a stream it checks the
 * page's entity tag at intervals. It replaces only the children of a part that have changed, so
 * that focus, selection, scroll positions and the announcements of `aria-live` remain.
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
  const updatePart = (part, next) => {
    const focused = part.contains(document.activeElement) ? document.activeElement : null
    const lefts = scrolled(part).map((one) => one.scrollLeft)
    replaceChanged(part, next)
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
  for (const event of ["open", "error", "position", "notification", "status"]) {
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

/**
 * `/page.js`, of every page: converts times to the reader's locale and adds buttons that copy, and
 * one that switches between light and dark. Without the script a page shows times in UTC, and the
 * colors that the reader's system asks for. A browser that knows `blocking="render"` (WHATWG HTML
 * §2.5.8) shows the page when the script has run, so that it does not begin in other colors than
 * the chosen ones. The page is parsed meanwhile.
 */
export const pageScript = `"use strict"
{
  const root = document.documentElement
  const schemes = ["light", "dark"]
  const isDarkWanted = matchMedia("(prefers-color-scheme: dark)")
  let chosen = null
  // Reading fails where the reader's settings forbid storage.
  try { chosen = localStorage.getItem("theme") } catch {}
  if (schemes.includes(chosen)) root.dataset.theme = chosen
  const addThemeButton = () => {
    const place = document.querySelector(".reader")
    if (place === null) return
    const button = document.createElement("button")
    button.type = "button"
    button.className = "small theme"
    const other = () => {
      const shown = root.dataset.theme ?? (isDarkWanted.matches ? "dark" : "light")
      return shown === "dark" ? "light" : "dark"
    }
    const label = () => {
      const name = other() === "dark" ? "Dark" : "Light"
      button.textContent = name
      button.setAttribute("aria-label", name + " colors")
    }
    button.addEventListener("click", () => {
      root.dataset.theme = other()
      try { localStorage.setItem("theme", root.dataset.theme) } catch {}
      label()
    })
    isDarkWanted.addEventListener("change", label)
    label()
    place.append(button)
  }
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" })
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" })
  const units = [["day", 86_400], ["hour", 3_600], ["minute", 60]]
  const daysMax = 7
  const ago = (at) => {
    const seconds = (at - Date.now()) / 1_000
    if (Math.abs(seconds) >= daysMax * 86_400) return day.format(at)
    const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", Infinity]
    return relative.format(Math.trunc(seconds / size), unit)
  }
  const localize = (node) => {
    const at = new Date(node.dateTime)
    if (Number.isNaN(at.getTime())) return
    const isAgo = node.dataset.ago !== undefined
    if (node.title === "") {
      node.title = isAgo ? exact.format(at) + " \u00b7 " + node.textContent : node.textContent
    } else if (!isAgo) return
    const text = isAgo ? ago(at) : exact.format(at)
    if (node.textContent !== text) node.textContent = text
  }
  const addCopyButton = (node) => {
    if (navigator.clipboard === undefined || node.dataset.ready !== undefined) return
    node.dataset.ready = ""
    const button = document.createElement("button")
    button.type = "button"
    button.className = "small"
    button.textContent = "Copy"
    button.setAttribute("aria-label", "Copy the " + node.dataset.copy)
    const result = document.createElement("span")
    result.setAttribute("role", "status")
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(node.textContent).then(
        () => { result.textContent = " Copied." },
        () => { result.textContent = " It could not be copied." }
      )
    })
    node.after(" ", button, result)
  }
  const enhance = (root) => {
    for (const node of root.querySelectorAll("time[datetime]")) localize(node)
    for (const node of root.querySelectorAll("[data-copy]")) addCopyButton(node)
  }
  let isBegun = false
  const begin = () => {
    if (isBegun) return
    isBegun = true
    addThemeButton()
    enhance(document)
    new MutationObserver((changes) => {
      for (const change of changes) {
        for (const node of change.addedNodes) {
          if (node.parentElement !== null) enhance(node.parentElement)
        }
      }
    }).observe(document.body, { childList: true, subtree: true })
    setInterval(() => {
      for (const node of document.querySelectorAll("time[data-ago]")) localize(node)
    }, ${relativeTimesMs})
  }
  // After deferred scripts, which need the page as the service sent it.
  if (document.readyState === "complete") begin()
  else {
    document.addEventListener("DOMContentLoaded", begin)
    addEventListener("load", begin)
  }
}
`
