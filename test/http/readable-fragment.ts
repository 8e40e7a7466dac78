import { openFragment, sealPasswordFor } from "../../actors/sealed-fragment.ts"
import { type NotificationDocument, storedFragment } from "../../http/formats/xml/index.ts"
import { address } from "../../runtime/index.ts"
import { testKeyring } from "../actors/dependencies.ts"

const owner = address("mailbox", "alice")

/** The fragment of a notification as readers get it, through the form in which it is stored. */
export const readableFragment = (document: NotificationDocument): string =>
  openFragment(testKeyring, owner, storedFragment(document, sealPasswordFor(testKeyring, owner)))
