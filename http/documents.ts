/** Builds and reads the XML documents of background tasks and relays, for `actors`. */
import type { Documents } from "../actors/background-task/index.ts"
import { childOf, childText, element, optionalElement, parseFragment,
  writeDocument } from "./formats/xml/index.ts"
import { activityOf } from "./resources/interop/index.ts"

/** The documents of background tasks (A4), and of relays to other services. */
export const notificationDocuments: Documents & {
  /** A notification in JSON-LD, for an inbox of another service (LDN §3.2). */
  readonly activityOf: (fragment: string, to: string) => string
} = {
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
