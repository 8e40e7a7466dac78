/** The script of all pages. They also work without it. */
import { relativeTimesMs } from "../../../limits.ts"
import { icon, type IconName } from "../icon.ts"

/** How long a form stays busy whose page is not left. */
const busyMs = 10_000

/** The icons that the script adds. */
const iconTexts = Object.fromEntries(
  (["copy", "dark", "light"] satisfies ReadonlyArray<IconName>).map((name) => [
    name,
    icon(name).text
  ])
)

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
  const icons = ${JSON.stringify(iconTexts)}
  const icon = (name) =>
    document.importNode(
      new DOMParser().parseFromString(icons[name], "image/svg+xml").documentElement, true)
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
      button.replaceChildren(icon(other()), name)
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
  // The sections are one row on a phone, and the link to the current one may be outside of it.
  const revealSection = () => {
    const link = document.querySelector("header nav [aria-current]")
    if (link === null) return
    const row = link.closest("ul")
    const [outer, inner] = [row, link].map((node) => node.getBoundingClientRect())
    row.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2
  }
  // A form that was sent is busy until its page is left: a second submission would repeat it.
  const busy = new Map()
  const restore = (form) => {
    const { button, timer } = busy.get(form)
    busy.delete(form)
    clearTimeout(timer)
    button?.removeAttribute("aria-busy")
    button?.removeAttribute("aria-disabled")
  }
  const markBusy = (event) => {
    const form = event.target
    if (event.defaultPrevented) return
    if (busy.has(form)) return event.preventDefault()
    const button = event.submitter
    button?.setAttribute("aria-busy", "true")
    button?.setAttribute("aria-disabled", "true")
    // An answer without a page, or a reader who stops the request, leaves the page as it is.
    busy.set(form, { button, timer: setTimeout(restore, ${busyMs}, form) })
  }
  // After the listeners of the page, some of which send the form themselves.
  addEventListener("submit", markBusy)
  // The browser shows the page again as it was left.
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) for (const form of [...busy.keys()]) restore(form)
  })
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
    button.append(icon("copy"), "Copy")
    button.setAttribute("aria-label", "Copy the " + node.dataset.copy)
    const result = document.createElement("span")
    result.setAttribute("role", "status")
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(node.dataset.text ?? node.textContent).then(
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
    revealSection()
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
