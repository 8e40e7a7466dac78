/** Builds and reads the XML documents of background tasks and relays, for `actors`. */
import type { Documents } from "../actors/background-task/index.ts"
import { childOf, element, parseFragment, textOf, writeElement,
  xmlDeclaration } from "./formats/xml/index.ts"
import { activityOf } from "./resources/mailboxes/index.ts"

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
    const item = parseFragment(fragment).find((child) =>
      typeof child !== "string" && child.name === "item"
    )
    if (item === undefined || typeof item === "string") return undefined
    const url = childOf(item, "url")
    const password = childOf(item, "password")
    if (url === undefined) return undefined
    return {
      url: textOf(url).trim(),
      password: password === undefined ? undefined : textOf(password)
    }
  },
  receiptDocument: ({ description, mailbox, status }) =>
    xmlDeclaration + writeElement(
      element(
        "receipt",
        { status, mailbox },
        description === undefined ? undefined : element("description", {}, description)
      )
    )
}
