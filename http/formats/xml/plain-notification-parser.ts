/**
 * A fast parser for plain notifications: elements without attributes whose text has no references.
 * Nearly all notifications are plain. `DocumentParser` parses every other notification as a tree,
 * also one that breaks a rule. So only that parser explains faults.
 */
import { uriCharsMax } from "../../limits.ts"
import { isReservedName } from "./element.ts"
import { fieldOf, isUri, type NotificationDocument,
  type WrittenItem } from "./notification-document.ts"

/** References, `]`, and characters that an XML parser changes or rejects. */
// eslint-disable-next-line no-control-regex
const notPlain = /[^\t\n\x20-%'-\\^-\x7e\u00a0-\ud7ff\ue000-\ufffd]/

const opening = "<notification>"

const itemOpening = "<item>"

const itemClosing = "</item>"

const closing = "</notification>"

const lessThan = 60

const greaterThan = 62

const slash = 47

/** Elements in a plain item. */
const childrenMax = 32

/** Characters of a plain name. */
const nameCharsMax = 32

const noRecipients: ReadonlyArray<string> = []

const skipBlanks = (text: string, from: number): number => {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 32 && code !== 10 && code !== 9) return at
    at++
  }
}

/** Whether the name consists of ASCII letters; `| 32` makes them lower case. */
const isPlainName = (name: string): boolean => {
  if (name.length === 0 || name.length > nameCharsMax) return false
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at) | 32
    if (code < 97 || code > 122) return false
  }
  return !isReservedName(name)
}

/** Whether the document ends with the item's end at `from`. */
const isComplete = (text: string, from: number): boolean => {
  if (!text.startsWith(itemClosing, from)) return false
  const at = skipBlanks(text, from + itemClosing.length)
  return text.startsWith(closing, at) && at + closing.length === text.length
}

const isPlainUri = (text: string): boolean =>
  text !== "" && text.length <= uriCharsMax && isUri(text)

/** How a stored item begins, see `storedFragment`. */
const beforeDescription = `${itemOpening}<description>`

const betweenFields = "</description><url>"

const afterUrl = "</url>"

const beforePassword = "<password>"

const afterPassword = "</password>"

/**
 * The item from `from` to `to` of the text, if it is written as `storedFragment` would write these
 * fields: in the same order, without blanks.
 */
const writtenItem = (
  text: string,
  [from, to]: readonly [number, number],
  description: string,
  url: string,
  password: string | undefined,
  extra: string
): WrittenItem | undefined => {
  const betweenAt = from + beforeDescription.length + description.length
  const afterUrlAt = betweenAt + betweenFields.length + url.length
  if (
    !text.startsWith(beforeDescription, from) || !text.startsWith(betweenFields, betweenAt) ||
    !text.startsWith(afterUrl, afterUrlAt)
  ) return undefined
  const restAt = afterUrlAt + afterUrl.length
  const endBytes = extra.length + itemClosing.length
  if (password === undefined) {
    return restAt + endBytes === to ? { before: text.slice(from, to), after: "" } : undefined
  }
  const start = restAt + beforePassword.length
  const end = start + password.length
  return text.startsWith(beforePassword, restAt) && end + afterPassword.length + endBytes === to
    ? { before: text.slice(from, start), after: text.slice(end, to) }
    : undefined
}

/** The notification, or undefined if the text is not plain and must be read as a tree. */
export const parsePlainNotification = (text: string): NotificationDocument | undefined => {
  if (!text.startsWith(opening) || notPlain.test(text)) return
  const itemAt = skipBlanks(text, opening.length)
  if (!text.startsWith(itemOpening, itemAt)) return
  let at = skipBlanks(text, itemAt + itemOpening.length)
  let description: string | undefined
  let url: string | undefined
  let password: string | undefined
  let extra = ""
  let hasMark = false
  for (let child = 0; child < childrenMax; child++) {
    if (text.charCodeAt(at) !== lessThan) return
    if (text.charCodeAt(at + 1) === slash) break
    const start = at
    const valueAt = text.indexOf(">", start) + 1
    const name = text.slice(start + 1, valueAt - 1)
    const end = text.indexOf("<", valueAt)
    const nameAt = end + 2
    at = nameAt + name.length
    const field = fieldOf(name)
    if (
      end < 0 || text.charCodeAt(end + 1) !== slash || text.charCodeAt(at) !== greaterThan ||
      !text.startsWith(name, nameAt) || (field === undefined && !isPlainName(name))
    ) return
    // A `>` in a text is stored as a reference.
    hasMark ||= text.indexOf(">", valueAt) !== at
    at++
    if (field === undefined) extra += text.slice(start, at)
    else if (field === "description" && description === undefined) {
      description = text.slice(valueAt, end)
    } else if (field === "url" && url === undefined) url = text.slice(valueAt, end).trim()
    else if (field === "password" && password === undefined) {
      password = text.slice(valueAt, end).trim()
    } // A field for the second time, or one that plain notifications do not have.
    else return
    at = skipBlanks(text, at)
  }
  if (description === undefined || url === undefined) return
  if (!isPlainUri(url) || !isComplete(text, at)) return
  return {
    to: noRecipients,
    from: false,
    sender: undefined,
    description,
    url,
    password,
    content: undefined,
    itemAttributes: "",
    fieldAttributes: undefined,
    extra,
    rootExtra: "",
    written: hasMark
      ? undefined
      : writtenItem(text, [itemAt, at + itemClosing.length], description, url, password, extra)
  }
}
