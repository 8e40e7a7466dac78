/** Input of registrations: a callback, or the fields of a WebSub request. */
import type { FormFields } from "../../formats/index.ts"
import { childText, failure, type Result, success } from "../../formats/xml/index.ts"
import { leaseSecondsDefault, leaseSecondsMax, subscriberSecretBytesMax,
  uriCharsMax } from "../../limits.ts"
import type { RequestInput } from "../../pipeline/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"

/** The callback in a document or in the form of a page, unchecked. */
export const callbackIn = (input: RequestInput): string | undefined => {
  const text = input._tag === "Form"
    ? input.fields.get("callback")
    : childText(input.root, "callback")
  return text?.trim() || undefined
}

/** The callback, or its fault, which begins with the name of the field. */
export const parseCallback = (
  name: string,
  text: string | undefined
): Result<string, string> => {
  if (text === undefined) return failure(`${name} is required: the URI that changes are pushed to`)
  if (text.length > uriCharsMax) {
    return failure(`${name} may have ${uriCharsMax} characters at the most`)
  }
  const isWritten = /^https?:\/\/[^/?#]/i.test(text) && /^[\x21-\x7e]+$/.test(text)
  if (!isWritten || !URL.canParse(text)) {
    return failure(`${name} must be an absolute http or https URI`)
  }
  const { password, username } = new URL(text)
  if (username !== "" || password !== "") {
    return failure(`${name} must hold neither a user name nor a password`)
  }
  return text.includes("#") ? failure(`${name} must have no fragment`) : success(text)
}

/** A valid WebSub request (WebSub §5.1). */
export type HubRequest =
  | {
    readonly mode: "subscribe"
    readonly callback: string
    readonly secret: string | undefined
    readonly leaseSeconds: number
  }
  | { readonly mode: "unsubscribe"; readonly callback: string }

/** Whether a form is a WebSub request, and not the form of a page. */
export const isHubRequest = (fields: FormFields): boolean =>
  fields.entries().some(([name]) => name.startsWith("hub."))

const parseLease = (text: string | undefined): Result<number, string> => {
  if (text === undefined || text === "") return success(leaseSecondsDefault)
  return /^\d+$/.test(text) && Number(text) > 0
    ? success(Math.min(Number(text), leaseSecondsMax))
    : failure("hub.lease_seconds must be a positive whole number")
}

/** The WebSub request of these fields for this mailbox, or the fault of one field. */
export const parseHubRequest = (
  fields: FormFields,
  mailbox: MailboxRef
): Result<HubRequest, string> => {
  const mode = fields.get("hub.mode")
  if (mode !== "subscribe" && mode !== "unsubscribe") {
    return failure("hub.mode must be subscribe or unsubscribe")
  }
  // The verification and the pushes name the public URI, which the subscriber must recognize.
  if (fields.get("hub.topic") !== mailbox.href) {
    return failure(`hub.topic must be the mailbox: ${mailbox.href}`)
  }
  const callback = parseCallback("hub.callback", fields.get("hub.callback"))
  if (!callback.ok) return callback
  if (mode === "unsubscribe") return success({ mode, callback: callback.value })
  const secret = fields.get("hub.secret") || undefined
  if (secret !== undefined && Buffer.byteLength(secret) > subscriberSecretBytesMax) {
    return failure(`hub.secret may have ${subscriberSecretBytesMax} bytes at the most`)
  }
  const lease = parseLease(fields.get("hub.lease_seconds"))
  if (!lease.ok) return lease
  return success({ mode, callback: callback.value, secret, leaseSeconds: lease.value })
}
