/**
 * Whether a token may be used for a request. Each operation declares the scopes of which a token
 * needs one (`formats/openapi/operation.ts`); `identity.ts` checks them wherever a request has an
 * account.
 */
import type { TokenRights } from "../../actors/account/index.ts"
import { type Call, type HttpError, insufficientScope } from "../pipeline/index.ts"
import { scopeWords } from "./credentials/index.ts"

const mailboxOf = ({ parameters }: Call): string | undefined =>
  parameters.has("mailbox") ? parameters.get("mailbox") : undefined

/** Why a token of these rights may not be used for this call; undefined if it may. */
export const scopeFault = (call: Call, held: TokenRights): HttpError | undefined => {
  const { mailbox, scopes } = held
  const [needed, ...others] = call.access?.scopes ?? []
  // An operation without scopes is open to everybody.
  if (needed === undefined) return undefined
  const isHeld = scopes === undefined || [needed, ...others].some((one) => scopes.includes(one))
  const words = scopeWords(held).join(" ")
  const has = words === "" ? "this token has no scope here" : `this token has the scope ${words}`
  if (!isHeld) {
    const either = [needed, ...others].join(" or ")
    return insufficientScope(
      `${has}, and this request needs ${either}: use a token with it`,
      needed
    )
  }
  return mailbox === undefined || mailbox === mailboxOf(call) ? undefined : insufficientScope(
    `${has}, which is for that mailbox only: use a token without mailbox:${mailbox}`,
    needed
  )
}
