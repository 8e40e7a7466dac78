/** A notification in a few words, for people and for feeds. */
import { childOf, parseFragment, textOf } from "../xml.ts"
import type { MailboxEntry } from "./listing.ts"
import type { MailboxRef } from "./reader.ts"

/** What a person wants to know of a notification. */
export interface Summary {
  readonly href: string
  readonly received: string
  readonly description: string
  readonly url: string
  readonly password: string | undefined
  readonly from: string | undefined
}

export const summaryOf = (place: MailboxRef, entry: MailboxEntry): Summary => {
  const item = parseFragment(entry.fragment).find((child) =>
    typeof child !== "string" && child.name === "item"
  )
  const field = (name: string): string | undefined => {
    const child = item === undefined || typeof item === "string" ? undefined : childOf(item, name)
    return child === undefined ? undefined : textOf(child)
  }
  return {
    href: `${place.here}/notifications/${entry.id}`,
    received: entry.received,
    description: field("description") ?? "",
    url: field("url") ?? "",
    password: field("password"),
    from: field("from")
  }
}
