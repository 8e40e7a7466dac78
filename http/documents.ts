/** Builds and reads the documents of background tasks, relays and pushes, for `actors`. */
import type { Documents } from "../actors/background-task/index.ts"
import type { RegistrationDependencies } from "../actors/registration/index.ts"
import { childOf, childText, element, optionalElement, parseFragment,
  writeDocument } from "./formats/xml/index.ts"
import { activityOf } from "./resources/interop/index.ts"
import { topicDocument } from "./resources/registrations/index.ts"

/** The documents of background tasks (A4), of relays to other services, and of WebSub pushes. */
export const notificationDocuments: Documents & RegistrationDependencies["documents"] & {
  /** A notification in JSON-LD, for an inbox of another service (LDN §3.2). */
  readonly activityOf: (fragment: string, to: string) => string
} = {
  activityOf: (fragment, target) => activityOf(fragment, { target }).text,
  topicDocument,
  descriptionOf: (fragment) => {
    const item = childOf({ children: parseFragment(fragment) }, "item")
    return item === undefined ? undefined : childText(item, "description")?.trim() || undefined
  },
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
