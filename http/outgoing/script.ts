/** `/outgoing.js`: with it an open page of a notification changes by itself. */
import { pageTools } from "../html/script.ts"

export const outgoingScript = `"use strict"
const rows = document.getElementById("recipients")
const state = document.getElementById("live")
if (rows !== null && window.EventSource !== undefined) {
  const marks = {
    sent: "\\u2713 sent",
    success: "\\u2713 success",
    waiting: "\\u25cb waiting",
    retry: "\\u21bb retry",
    failed: "\\u2717 failed"
  }
  const kinds = { sent: "good", success: "good", waiting: "wait", retry: "wait", failed: "bad" }
  const badge = (node, status) => {
    node.textContent = marks[status] ?? ""
    node.className = "badge " + (kinds[status] ?? "")
  }
${pageTools}
  const rowOf = (recipient) => {
    const field = (name) => recipient.getAttribute(name)
    const row = document.createElement("tr")
    link(field("href") ?? "", field("href") ?? "", make("td", undefined, row))
    const cell = make("td", undefined, row)
    badge(make("span", undefined, cell), field("status"))
    cell.append(" ")
    const attempts = field("attempts") ?? "0"
    const details = make("span", attempts + (attempts === "1" ? " attempt" : " attempts"), cell)
    details.className = "quiet"
    for (const name of ["last", "next"]) {
      const text = field(name)
      if (text === null) continue
      details.append(" \\u00b7 " + name + " ")
      make("time", text.slice(0, 19).replace("T", " ") + " UTC", details).dateTime = text
    }
    const problem = field("problem")
    const code = field("code")
    if (code !== null && problem?.includes(code) !== true) {
      details.append(" \\u00b7 answered " + code)
    }
    if (problem !== null) details.append(" \\u00b7 " + problem)
    if (field("location") !== null) {
      details.append(" \\u00b7 ")
      link(field("location"), "where it is stored", details)
    }
    return row
  }
  const show = (text) => {
    const root = new DOMParser().parseFromString(text, "application/xml").documentElement
    badge(document.getElementById("status"), root.getAttribute("status"))
    rows.replaceChildren(...[...root.children].map(rowOf))
  }
  const source = new EventSource(rows.dataset.stream)
  source.addEventListener("open", () => say("This page changes by itself."))
  source.addEventListener("error", () =>
    say(source.readyState === EventSource.CLOSED
      ? "Load this page again to see how it stands."
      : "The connection is lost; trying again."))
  source.addEventListener("status", (event) => show(event.data))
  source.addEventListener("gone", () => {
    source.close()
    say("This notification has been removed.")
  })
}
`
