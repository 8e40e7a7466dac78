/** The script of pages with a list of notifications. The pages also work without it. */
import { pageNoticeMs, pageRemovalsMax, removalUndoMs } from "../../../limits.ts"

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
 * Removals, which the reader may undo for `removalUndoMs` after the last of them. Then, or when the
 * page is left, they are sent. A row stays hidden when its removal is sent, also if `/live.js` has
 * read the page before it arrived; it comes back when it was refused, or when nobody knows.
 */
const removals = `
  // The path of each notification, and its title.
  const pending = new Map()
  const hidden = new Set()
  let removalTimer
  const hideRows = () => {
    for (const row of list.children) row.hidden = hidden.has(pathOf(row))
  }
  new MutationObserver(hideRows).observe(list, { childList: true })
  const remove = async ([path, title]) => {
    let status = 0
    try {
      // It is sent also while the browser leaves the page.
      status = (await fetch(path, { method: "DELETE", keepalive: true })).status
    } catch {}
    if ((status >= 200 && status < 300) || status === 410) return undefined
    const isKnown = status >= 400 && status < 500
    hidden.delete(path)
    return { title, isKnown, answer: status === 0 ? "did not answer" : "answers " + status }
  }
  const report = (failures) => {
    const [{ answer, isKnown, title }] = failures
    const what = failures.length === 1
      ? "\u201c" + title + "\u201d " + (isKnown ? "was" : "is perhaps")
      : failures.length + " notifications " + (isKnown ? "were" : "are perhaps")
    say(what + " not removed: the service " + answer + ". " + (isKnown
      ? "Sign in again if you have to, and remove it again."
      : "Reload this page to see its current state."))
  }
  const removeAll = async (removals) => {
    const results = await Promise.all(removals.map(remove))
    hideRows()
    refresh()
    const failures = results.filter((result) => result !== undefined)
    if (failures.length > 0) report(failures)
  }
  const takePending = () => {
    clearTimeout(removalTimer)
    const taken = [...pending]
    pending.clear()
    return taken
  }
  const sendPending = () => {
    const taken = takePending()
    say()
    return removeAll(taken)
  }
  const undo = () => {
    if (pending.size === 0) return false
    const paths = takePending().map(([path]) => path)
    for (const path of paths) hidden.delete(path)
    hideRows()
    linkOf(rows().find((row) => paths.includes(pathOf(row))) ?? list)?.focus()
    sayBriefly(paths.length === 1 ? "It is back." : "They are back.")
  }
  const undoButton = make("button", { type: "button", className: "small", textContent: "Undo" })
  undoButton.addEventListener("click", undo)
  // The list may leave out a row that its own page removes.
  const removeLater = (path, title) => {
    if (pending.size >= ${pageRemovalsMax}) void sendPending()
    const all = rows()
    const at = all.findIndex((row) => pathOf(row) === path)
    pending.set(path, title)
    hidden.add(path)
    hideRows()
    clearTimeout(removalTimer)
    removalTimer = setTimeout(sendPending, ${removalUndoMs})
    say(pending.size === 1 ? "Removed." : pending.size + " removed.", " ", undoButton)
    const next = at < 0 ? undefined : all[at + 1] ?? all[at - 1]
    if (next === undefined) undoButton.focus()
    else linkOf(next).focus()
  }
  list.addEventListener("submit", (event) => {
    const row = event.target.closest(".entries > li")
    if (event.target.elements.remove === undefined || row === null) return
    event.preventDefault()
    removeLater(pathOf(row), linkOf(row).textContent)
  })
  // A page that is left cannot see what becomes of its removals. The next list of the same tab
  // repeats those whose notifications it still shows.
  const sentKey = "removals"
  addEventListener("pagehide", () => {
    const taken = takePending()
    if (taken.length === 0) return
    say()
    try { sessionStorage.setItem(sentKey, JSON.stringify(taken)) } catch {}
    // A page that comes back has seen it, and repeats nothing.
    void removeAll(taken).then(() => {
      try { sessionStorage.removeItem(sentKey) } catch {}
    })
  })
  let sent = []
  // The removal that the page of a notification has left to this list.
  let left = null
  try {
    sent = JSON.parse(sessionStorage.getItem(sentKey) ?? "[]")
    sessionStorage.removeItem(sentKey)
    left = JSON.parse(sessionStorage.getItem(leftKey))
    if (left?.list === location.pathname) sessionStorage.removeItem(leftKey)
    else left = null
  } catch {}
  const shownPaths = rows().map(pathOf)
  const repeated = sent.filter(([path]) => shownPaths.includes(path))
  for (const [path] of repeated) hidden.add(path)
  if (repeated.length > 0) {
    hideRows()
    void removeAll(repeated)
  }
  if (left !== null) removeLater(left.path, left.title)
`

/** The page of a notification leaves its removal to the list, which can undo it. */
const ownPage = `
  const form = document.querySelector("form[data-list]")
  form?.addEventListener("submit", (event) => {
    const list = new URL(form.dataset.list, location.href)
    const path = new URL(form.action).pathname
    const title = document.querySelector("h1").textContent
    // Without storage the browser follows the form to the page that asks.
    try {
      sessionStorage.setItem(leftKey, JSON.stringify({ list: list.pathname, path, title }))
    } catch { return }
    event.preventDefault()
    location.assign(list)
  })
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
  const close = make("button", { type: "button", className: "secondary", textContent: "Close" })
  const areOn = make("input", { type: "checkbox", id: "keys-on", checked: areKeysOn })
  const names = [
    ["j, \\u2193", "The next notification"],
    ["k, \\u2191", "The previous notification"],
    ["Enter", "Opens the notification"],
    ["r", "Marks it as read, or as unread"],
    ["u", "Brings back what was just removed"],
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
  // The path of the notification that has the focus before the dialog.
  let pathBefore
  // A browser returns the focus, unless /live.js has replaced the row meanwhile.
  dialog.addEventListener("close", () => {
    const focused = document.activeElement ?? document.body
    if (focused !== document.body && !dialog.contains(focused)) return
    const row = rows().find((one) => pathOf(one) === pathBefore)
    if (row !== undefined) linkOf(row).focus()
  })
  const showKeys = () => {
    const row = focusedRow()
    pathBefore = row === null ? undefined : pathOf(row)
    dialog.showModal()
    close.focus()
  }
  areOn.addEventListener("change", () => {
    areKeysOn = areOn.checked
    try { localStorage.setItem("keys", areKeysOn ? "on" : "off") } catch {}
  })
  const opener = make("button", { type: "button", className: "small keys", textContent: "Keys" })
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
    u: undo,
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

/**
 * `/list.js`: keys for a list of notifications, and removals that can be undone, also from the page
 * of a notification.
 */
export const listScript = `"use strict"
const leftKey = "removal"
const list = document.querySelector("ol.entries")
if (list !== null) {${parts}${marks}${removals}${keyboard}} else {${ownPage}}
`
