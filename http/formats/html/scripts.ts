/**
 * `/live.js`: with it the parts of an open page that may change (`livePart`) are put in again when
 * the service has another page at its address. What is focused, marked and scrolled stays.
 */
import { pageRefreshMs } from "../../limits.ts"

/**
 * Functions that page scripts share. `make` and `link` build nodes: text of others reaches the page
 * as text only, links are http and https only. `say` writes to `state`, the element that says how
 * live the page is. `follow` shows the events of a stream.
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

/**
 * `/page.js`, of every page: times in the reader's locale, and buttons that copy. Without it times
 * are UTC, and what is to be copied can be marked.
 */
export const pageScript = `"use strict"
{
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
  const tell = (node) => {
    const at = new Date(node.dateTime)
    if (node.title !== "" || Number.isNaN(at.getTime())) return
    node.title = node.textContent
    node.textContent = format.format(at)
  }
  const copier = (node) => {
    if (navigator.clipboard === undefined || node.dataset.ready !== undefined) return
    node.dataset.ready = ""
    const button = document.createElement("button")
    button.type = "button"
    button.className = "small"
    button.textContent = "Copy"
    button.setAttribute("aria-label", "Copy the " + node.dataset.copy)
    const said = document.createElement("span")
    said.setAttribute("role", "status")
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(node.textContent).then(
        () => { said.textContent = " Copied." },
        () => { said.textContent = " It could not be copied." }
      )
    })
    node.after(" ", button, said)
  }
  const dress = (root) => {
    for (const node of root.querySelectorAll("time[datetime]")) tell(node)
    for (const node of root.querySelectorAll("[data-copy]")) copier(node)
  }
  dress(document)
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) {
        if (node.parentElement !== null) dress(node.parentElement)
      }
    }
  }).observe(document.body, { childList: true, subtree: true })
}
`
