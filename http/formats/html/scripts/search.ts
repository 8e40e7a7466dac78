/** The script of a search that shows what it finds while its reader types. */
export const searchScriptPath = "/search.js"

/** How long nobody types before the service is asked, in ms. */
const pauseMs = 300

/** Fewer characters find too much. */
const charsMin = 2

/**
 * `/search.js`: shows what the form with `data-search` finds in the same page: it takes the places
 * and their number from the page that the form leads to. When that fails, they stay as they are:
 * the form itself still works, and its page says why.
 */
export const searchScript = `"use strict"
const form = document.querySelector("form[data-search]")
if (form !== null) {
  // How many places, and the places.
  const parts = ["found-count", "found"].map((id) => document.getElementById(id))
  const field = form.elements.namedItem("q")
  const [count, found] = parts
  // What the page says of the places that it shows.
  let counted = count.textContent
  let asked = field.value.trim()
  let timer
  let request = new AbortController()
  const show = async (query, signal) => {
    const uri = form.action + "?q=" + encodeURIComponent(query)
    found.setAttribute("aria-busy", "true")
    count.textContent = "Searching\u2026"
    try {
      await replace(uri, signal)
    } finally {
      if (!signal.aborted) {
        count.textContent = counted
        found.removeAttribute("aria-busy")
      }
    }
  }
  const replace = async (uri, signal) => {
    const response = await fetch(uri, { headers: { accept: "text/html" }, signal })
    if (!response.ok) return
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    if (signal.aborted) return
    for (const part of parts) part.replaceChildren(...page.getElementById(part.id).childNodes)
    counted = count.textContent
  }
  const search = () => {
    const query = field.value.trim()
    if (query === asked) return
    asked = query
    request.abort()
    request = new AbortController()
    if (query.length < ${charsMin}) {
      for (const part of parts) {
        part.replaceChildren()
        part.removeAttribute("aria-busy")
      }
      counted = ""
    } else show(query, request.signal).catch(() => {})
  }
  field.addEventListener("input", () => {
    clearTimeout(timer)
    timer = setTimeout(search, ${pauseMs})
  })
}
`
