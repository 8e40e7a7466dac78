/** Which notifications a listing has: by a text, a tag, a priority, and the read marks. */
import { Effect } from "effect"
import { covers, decodeItem, type MailboxView } from "../../../../actors/mailbox/index.ts"
import type { FormFields } from "../../../formats/index.ts"
import { childOf, type Element, parseFragment, tagsIn } from "../../../formats/xml/index.ts"
import { searchCharsMax } from "../../../limits.ts"
import { firstPage, type HttpError, httpError } from "../../../pipeline/index.ts"

/** All conditions hold. */
export interface MailboxFilter {
  /** Only those without a read mark. */
  readonly isUnread: boolean
  /** Only those whose fields have this text, in any case; as it was typed. */
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
  const text = fields.get("q")?.trim() || undefined
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
  ["&#13;", "\r"],
  ["&amp;", "&"]
]

const withoutReferences = (text: string): string =>
  references.reduce((read, [reference, character]) => read.replaceAll(reference, character), text)

/** The text of all fields of a stored notification, as the search sees it. */
const searchedText = (fragment: string): string =>
  withoutReferences(fragment.replaceAll(/<[^>]*>/g, "\n")).toLowerCase()

/** The item of a stored notification. */
export const itemIn = (fragment: string): Element | undefined =>
  childOf({ children: parseFragment(fragment) }, "item")

const slash = "/".charCodeAt(0)
const greater = ">".charCodeAt(0)
const quote = "\"".charCodeAt(0)

/** Where the tag that begins at `at` ends. */
const endOfTag = (fragment: string, at: number): number => {
  let isQuoted = false
  for (let end = at + 1; end < fragment.length; end++) {
    const code = fragment.charCodeAt(end)
    if (code === quote) isQuoted = !isQuoted
    else if (code === greater && !isQuoted) return end
  }
  return fragment.length
}

/** Whether a name that has been read so far ends here. */
const endsName = (fragment: string, at: number): boolean => /[\s/>]/.test(fragment.charAt(at))

/**
 * The text of the item's first child of this name. What is stored has tags, texts and references
 * only, so a look at each tag finds it: a parser needs ten times as long, for each notification of
 * a mailbox that strangers fill.
 */
const fieldIn = (fragment: string, name: string): string | undefined => {
  if (!fragment.includes(`<${name}`)) return undefined
  let depth = 0
  for (let at = fragment.indexOf("<"); at !== -1; at = fragment.indexOf("<", at + 1)) {
    if (fragment.charCodeAt(at + 1) === slash) {
      depth -= 1
      continue
    }
    const end = endOfTag(fragment, at)
    const isEmpty = fragment.charCodeAt(end - 1) === slash
    if (
      depth === 1 && fragment.startsWith(name, at + 1) && endsName(fragment, at + 1 + name.length)
    ) {
      return isEmpty
        ? ""
        : withoutReferences(fragment.slice(end + 1, fragment.indexOf("<", end + 1)))
    }
    if (!isEmpty) depth += 1
    at = end
  }
  return undefined
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
  return text === undefined || searchedText(fragment).includes(text.toLowerCase())
}
