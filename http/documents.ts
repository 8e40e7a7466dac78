/** Builds and reads the XML documents of background tasks and relays, for `actors`. */
import type { Documents } from "../actors/background-task/index.ts"
import { childOf, childText, element, optionalElement, parseFragment,
  writeDocument } from "./formats/xml/index.ts"
import { activityOf } from "./resources/interop/index.ts"

/** A notification as an inbox elsewhere takes it (Linked Data Notifications §3.2). */
interface Activities {
  readonly activityOf: (fragment: string, to: string) => string
}

/**
 * What background tasks need of XML: what a notification points to, and the receipt (A4); and what
 * relays do.
 */
export const notificationDocuments: Documents & Activities = {
  activityOf: (fragment, target) => activityOf(fragment, { target }),
  pointerOf: (fragment) => {
    const item = childOf({ children: parseFragment(fragment) }, "item")
    const url = item === undefined ? undefined : childText(item, "url")
    if (item === undefined || url === undefined) return undefined
    return { url: url.trim(), password: childText(item, "password") }
  },
  receiptDocument: ({ description, mailbox, status }) =>
    writeDocument(
      element("receipt", { status, mailbox }, optionalElement("description", description))
    )
}
