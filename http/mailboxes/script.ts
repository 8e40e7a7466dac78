/** `/mailbox.js`: with it an open mailbox page fills by itself. Without it the page is complete. */
import { pageTools } from "../html/script.ts"

export const mailboxScript = `"use strict"
const list = document.querySelector("ol[data-stream]")
const state = document.getElementById("live")
if (list !== null && window.EventSource !== undefined) {
${pageTools}
  const child = (node, name) =>
    node === undefined ? undefined : [...node.children].find((one) => one.tagName === name)
  const show = (text) => {
    const root = new DOMParser().parseFromString(text, "application/xml").documentElement
    const href = root.getAttribute("href") ?? ""
    if ([...list.children].some((one) => one.dataset.href === href)) return
    const item = child(root, "item")
    const field = (name) => child(item, name)?.textContent ?? ""
    const entry = document.createElement("li")
    entry.dataset.href = href
    const url = field("url")
    const title = field("description") || url
    const head = make("p", undefined, entry)
    if (url === "") head.textContent = title
    else link(url, title, head)
    const foot = make("p", undefined, entry)
    foot.className = "quiet"
    const received = root.getAttribute("received") ?? ""
    const time = make("time", received.slice(0, 19).replace("T", " ") + " UTC", foot)
    time.dateTime = received
    if (field("from") !== "") {
      foot.append(" \\u00b7 from ")
      link(field("from"), field("from"), foot)
    }
    if (field("password") !== "") {
      foot.append(" \\u00b7 password ")
      const secret = make("span", undefined, foot)
      secret.dataset.copy = "password"
      make("code", field("password"), secret)
    }
    foot.append(" \\u00b7 ")
    link(href, "this notification", foot)
    const form = make("form", undefined, entry)
    form.action = href
    form.method = "post"
    const method = make("input", undefined, form)
    method.type = "hidden"
    method.name = "method"
    method.value = "delete"
    const button = make("button", "Remove", form)
    button.className = "small"
    button.setAttribute("aria-label", "Remove " + title)
    document.getElementById("empty")?.remove()
    list.append(entry)
  }
  const source = new EventSource(list.dataset.stream)
  source.addEventListener("open", () => say("New notifications appear by themselves."))
  source.addEventListener("error", () =>
    say(source.readyState === EventSource.CLOSED
      ? "Load this page again to see what is new."
      : "The connection is lost; trying again."))
  source.addEventListener("notification", (event) => show(event.data))
  source.addEventListener("gone", () => {
    source.close()
    say("This mailbox has been removed.")
  })
}
`
