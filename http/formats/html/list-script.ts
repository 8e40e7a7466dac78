/** The script of pages with a list of notifications. The pages also work without it. */
import { pageNoticeMs } from "../../limits.ts"

export const listScriptPath = "/list.js"

/** What is made of nodes, and the list. */
const parts = `
  const make = (tag, fields, ...children) => {
    const node = Object.assign(document.createElement(tag), fields)
    node.append(...children)
    return node
  }
  const notice = make("div", { className: "notice" })
  notice.setAttribute("role", "status")
  list.before(notice)
  let noticeTimer
  const say = (...content) => {
    clearTimeout(noticeTimer)
    notice.replaceChildren(...content.length === 0 ? [] : [make("p", {}, ...content)])
  }
  const sayBriefly = (...content) => {
    say(...content)
    noticeTimer = setTimeout(say, ${pageNoticeMs})
  }
  const rows = () => [...list.children].filter((row) => !row.hidden)
  const linkOf = (row) => row.querySelector("p > a")
  const pathOf = (row) => new URL(row.dataset.href, location.href).pathname
  const focusedRow = () => document.activeElement?.closest(".entries > li") ?? null
  // /live.js reads the page again.
  const refresh = () => document.dispatchEvent(new Event("stale"))
`

/** Read marks: of the row that has the focus. */
const marks = `
  const showMark = (row, isRead) => {
    row.classList.toggle("read", isRead)
    const mark = row.querySelector("p > b")
    if (isRead) {
      mark?.previousSibling?.remove()
      mark?.remove()
    } else if (mark === null) {
      row.querySelector("time")?.after(" \\u00b7 ", make("b", { textContent: "\\u25cf unread" }))
    }
  }
  const marking = new Set()
  const toggleMark = async (row) => {
    const path = pathOf(row)
    if (marking.has(path)) return
    marking.add(path)
    const isRead = !row.classList.contains("read")
    const what = isRead ? "read" : "unread"
    const title = "\\u201c" + linkOf(row).textContent + "\\u201d"
    try {
      const answer = await fetch(path + "/read", { method: isRead ? "PUT" : "DELETE" })
      if (answer.ok) {
        showMark(row, isRead)
        refresh()
        sayBriefly("Marked as " + what + ".")
      } else {
        say(title + " is not marked as " + what + ": the service answers " + answer.status +
          ". Reload this page, and try again.")
      }
    } catch {
      say(title + " may not be marked as " + what +
        ": the service did not answer. Reload this page to see it.")
    }
    marking.delete(path)
  }
`

/**
 * Keys of one character, which the reader may switch off (WCAG 2.1.4): those who speak to their
 * computer, and those who hit keys by accident.
 */
const keyboard = `
  let areKeysOn = true
  // Reading fails where the reader's settings forbid storage.
  try { areKeysOn = localStorage.getItem("keys") !== "off" } catch {}
  const move = (step) => {
    const all = rows()
    const at = all.indexOf(focusedRow())
    const to = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step
    linkOf(all[to] ?? all[at] ?? list)?.focus()
  }
  const search = document.querySelector("[role=search] [type=search]")
  const close = make("button", { type: "button", textContent: "Close" })
  const areOn = make("input", { type: "checkbox", id: "keys-on", checked: areKeysOn })
  const names = [
    ["j, \\u2193", "The next notification"],
    ["k, \\u2191", "The previous notification"],
    ["Enter", "Opens the notification"],
    ["r", "Marks it as read, or as unread"],
    ["/", "Goes to the search"],
    ["?", "Shows these keys"]
  ]
  const dialog = make(
    "dialog",
    { id: "keys" },
    make("h2", { id: "keys-title", textContent: "Keys" }),
    make("dl", { className: "keys" }, ...names.flatMap(([name, what]) => [
      make("dt", {}, make("kbd", { textContent: name })),
      make("dd", { textContent: what })
    ])),
    make("p", { className: "quiet", textContent: "The arrows move from a notification on." }),
    make("p", { className: "check" }, areOn, " ",
      make("label", { htmlFor: "keys-on", textContent: "Use these keys" })),
    make("p", {}, close)
  )
  dialog.setAttribute("aria-labelledby", "keys-title")
  list.after(dialog)
  close.addEventListener("click", () => dialog.close())
  const showKeys = () => {
    dialog.showModal()
    close.focus()
  }
  areOn.addEventListener("change", () => {
    areKeysOn = areOn.checked
    try { localStorage.setItem("keys", areKeysOn ? "on" : "off") } catch {}
  })
  const opener = make("button", { type: "button", className: "small", textContent: "Keys" })
  opener.setAttribute("aria-haspopup", "dialog")
  opener.addEventListener("click", showKeys)
  search?.closest("p").append(opener)
  const withRow = (act) => () => {
    const row = focusedRow()
    if (row === null) return false
    act(row)
  }
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    // Elsewhere the arrows scroll the page.
    ArrowDown: withRow(() => move(1)),
    ArrowUp: withRow(() => move(-1)),
    r: withRow((row) => void toggleMark(row)),
    "/": () => search?.select(),
    "?": showKeys
  }
  document.addEventListener("keydown", (event) => {
    const { altKey, ctrlKey, key, metaKey, repeat, shiftKey, target } = event
    if (!areKeysOn || dialog.open || event.defaultPrevented || event.isComposing) return
    // A layout may need Shift for the characters, and no other modifier.
    if (altKey || ctrlKey || metaKey || (shiftKey && key.length > 1)) return
    if (target.closest("input, textarea, select, [contenteditable]") !== null) return
    if (!Object.hasOwn(actions, key) || (repeat && key === "r")) return
    if (actions[key]() !== false) event.preventDefault()
  })
`

/** `/list.js`: keys for a list of notifications. */
export const listScript = `"use strict"
const list = document.querySelector("ol.entries")
if (list !== null) {${parts}${marks}${keyboard}}
`
