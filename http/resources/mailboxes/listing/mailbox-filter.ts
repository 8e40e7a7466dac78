/** Which notifications a listing has: by a text, a tag, a priority, and the read marks. */
import { Effect } from "effect"
import { covers, decodeItem, type MailboxView } from "../../../../actors/mailbox/index.ts"
import type { FormFields } from "../../../formats/index.ts"
import { childOf, childText, type Element, parseFragment } from "../../../formats/xml/index.ts"
import { searchCharsMax } from "../../../limits.ts"
import { firstPage, type HttpError, httpError } from "../../../pipeline/index.ts"

/** All conditions hold. */
export interface MailboxFilter {
  /** Only those without a read mark. */
  readonly isUnread: boolean
  /** Only those whose fields have this text, in any case. */
  readonly text: string | undefined
  /** Only those with this tag. */
  readonly tag: string | undefined
  /** Only those of this priority, 1 to 5; without one it is 3. */
  readonly priority: string | undefined
}

/** The fields of a query that are a filter, for people. */
export const filterNames = "q, tag, priority and unread"

const malformed = (detail: string): HttpError => httpError("malformed", detail, firstPage)

/** The filter of a query; browsers send empty fields of a form, which count as none. */
export const readFilter = Effect.fnUntraced(function*(
  fields: FormFields
): Effect.fn.Return<MailboxFilter | undefined, HttpError> {
  const text = fields.get("q")?.trim().toLowerCase() || undefined
  const tag = fields.get("tag")?.trim() || undefined
  const priority = fields.get("priority") || undefined
  const unread = fields.get("unread") || undefined
  if (unread !== undefined && unread !== "true") {
    return yield* malformed("unread must be true, or absent")
  }
  if (priority !== undefined && !/^[1-5]$/.test(priority)) {
    return yield* malformed("priority must be a number from 1 to 5, or absent")
  }
  for (const [name, value = ""] of [["q", text], ["tag", tag]] as const) {
    if (value.length > searchCharsMax) {
      return yield* malformed(
        `${name} has more than ${searchCharsMax} characters: search for less`
      )
    }
  }
  return [text, tag, priority, unread].every((one) => one === undefined)
    ? undefined
    : { isUnread: unread !== undefined, text, tag, priority }
})

/** The filter as further fields of a query. */
export const filterText = (filter: Partial<MailboxFilter> = {}): string =>
  [
    ["unread", filter.isUnread === true ? "true" : undefined],
    ["tag", filter.tag],
    ["priority", filter.priority],
    ["q", filter.text]
  ].map(([name, value]) => value === undefined ? "" : `&${name}=${encodeURIComponent(value)}`)
    .join("")

const references: ReadonlyArray<readonly [reference: string, character: string]> = [
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", "\""],
  ["&#39;", "'"],
  ["&amp;", "&"]
]

/** The text of all fields of a stored notification, as the search sees it. */
const searchedText = (fragment: string): string =>
  references.reduce(
    (text, [reference, character]) => text.replaceAll(reference, character),
    fragment.replaceAll(/<[^>]*>/g, "\n")
  ).toLowerCase()

/** The item of a stored notification. */
export const itemIn = (fragment: string): Element | undefined =>
  childOf({ children: parseFragment(fragment) }, "item")

/** The tags in a text that commas separate. */
export const tagsIn = (text = ""): ReadonlyArray<string> =>
  text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "")

/** The text of a field of the item; most notifications have none, and need no parser. */
const fieldIn = (fragment: string, name: string): string | undefined => {
  const item = fragment.includes(`<${name}`) ? itemIn(fragment) : undefined
  return item === undefined ? undefined : childText(item, name)
}

const usualPriority = "3"

/** Whether a notification passes the filter. */
export const passes = (
  { read = [] }: MailboxView,
  filter: MailboxFilter | undefined,
  { n, value }: { readonly n: number; readonly value: string }
): boolean => {
  if (filter === undefined) return true
  if (filter.isUnread && covers(read, n)) return false
  const { priority, tag, text } = filter
  const { fragment } = decodeItem(value)
  if (tag !== undefined && !tagsIn(fieldIn(fragment, "tags")).includes(tag)) return false
  if (priority !== undefined) {
    const own = fieldIn(fragment, "priority")?.trim() || usualPriority
    if (own !== priority) return false
  }
  return text === undefined || searchedText(fragment).includes(text)
}
