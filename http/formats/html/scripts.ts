/** The scripts of pages. Every page also works without them. */
import { pageRefreshMs } from "../../limits.ts"

/**
 * Functions that page scripts share. `make` and `link` build nodes: data from the service reaches
 * the page as text only, links are http and https only. `say` writes to `state`, the element with
 * the status of live updates. `follow` shows the events of a stream.
 */
export const pageTools = `  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const make = (name, text, parent) => {
    const node = document.createElement(name)
    if (text !== undefined) node.textContent = text
    parent.append(node)
    return node
  }
  const link = (href, text, parent) => {
    if (!/^https?:\\/\\//i.test(href)) return make("span", text, parent)
    const node = make("a", text, parent)
    node.href = href
    return node
  }
  const follow = (url, event, show, texts) => {
    const source = new EventSource(url)
    source.addEventListener("open", () => say(texts.live))
    source.addEventListener("error", () =>
      say(source.readyState === EventSource.CLOSED
        ? texts.closed
        : "The connection is lost; trying again."))
    source.addEventListener(event, ({ data }) => show(data))
    source.addEventListener("gone", () => {
      source.close()
      say(texts.gone)
    })
  }`

export const liveScriptPath = "/live.js"

/**
 * `/live.js`: replaces the live parts of an open page (`livePart`) when the entity tag of the page
 * changes. Focus, selection and scroll positions remain.
 */
export const liveScript = `"use strict"
const state = document.getElementById("live")
if (state !== null) {
  let etag = ""
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const scrolled = (root) => [...root.querySelectorAll(".scroll")]
  const identityOf = (node) => JSON.stringify(
    [node.tagName, node.id, node.getAttribute("href"), node.form?.action, node.ariaLabel]
  )
  const isSelected = (part) => {
    const selection = getSelection()
    return selection !== null && !selection.isCollapsed && selection.containsNode(part, true)
  }
  const replacePart = (part, next) => {
    const focused = part.contains(document.activeElement)
      ? identityOf(document.activeElement)
      : undefined
    const lefts = scrolled(part).map((one) => one.scrollLeft)
    part.replaceChildren(...next.childNodes)
    scrolled(part).forEach((one, at) => one.scrollLeft = lefts[at] ?? 0)
    if (focused === undefined) return
    const same = [...part.querySelectorAll("*")].find((one) => identityOf(one) === focused)
    same?.focus({ preventScroll: true })
  }
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html")
    const parts = [...document.querySelectorAll("[data-live]")]
    if (parts.some((part) => page.getElementById(part.id) === null)) return false
    for (const part of parts) replacePart(part, page.getElementById(part.id))
    return true
  }
  const refresh = async () => {
    const headers = { Accept: "text/html", ...etag === "" ? {} : { "If-None-Match": etag } }
    const answer = await fetch(location.pathname + location.search, { headers, cache: "no-store" })
    if (answer.status === 410) return "This is no longer here."
    if (!answer.ok && answer.status !== 304) {
      return "The service answers " + answer.status + "; trying again."
    }
    if (answer.status !== 304) {
      const text = await answer.text()
      // The reader may be about to copy the selection.
      if ([...document.querySelectorAll("[data-live]")].some(isSelected)) return
      if (!show(text)) return "Load this page again to see how it stands."
      etag = answer.headers.get("ETag") ?? ""
    }
    return "This page changes by itself."
  }
  const scheduleRefresh = () => setTimeout(async () => {
    if (document.visibilityState !== "hidden") {
      const text = await refresh().catch(() => "The connection is lost; trying again.")
      say(text ?? state.textContent)
    }
    scheduleRefresh()
  }, ${pageRefreshMs})
  say("This page changes by itself.")
  scheduleRefresh()
}
`

/**
 * `/page.js`, of every page: converts times to the reader's locale and adds buttons that copy.
 * Without it times are in UTC.
 */
export const pageScript = `"use strict"
{
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
  const localize = (node) => {
    const at = new Date(node.dateTime)
    if (node.title !== "" || Number.isNaN(at.getTime())) return
    node.title = node.textContent
    node.textContent = format.format(at)
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
  enhance(document)
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) {
        if (node.parentElement !== null) enhance(node.parentElement)
      }
    }
  }).observe(document.body, { childList: true, subtree: true })
}
`
