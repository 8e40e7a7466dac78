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
