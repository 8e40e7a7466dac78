/** The reasons of refusals: the closed list that the HTTP side maps to status codes. */
import { type Decision, refuse } from "../runtime/index.ts"
import type { Caller } from "./schemas.ts"

export type Reason =
  /** There is no such resource, or the capability for it is wrong. */
  | "NotFound"
  /** It was deleted. */
  | "Gone"
  /** The id or name belongs to another resource, or belonged to one. */
  | "Taken"
  /** No credentials, or a wrong secret. */
  | "Unauthenticated"
  /** The credentials are valid, but do not allow this. */
  | "Forbidden"
  /** The depositor is blocked here. */
  | "Blocked"
  /** Clients without an account have no room left. */
  | "QuotaExceeded"
  /** It has reached its bound. */
  | "Full"
  /** Too much earlier work is unfinished; a retry may succeed. */
  | "Busy"
  /** If-Match or another precondition did not hold. */
  | "PreconditionFailed"
  /** An answer came before the one that it follows. */
  | "OutOfOrder"
  /** The conversation is over; its answers are read-only. */
  | "Ended"
  /** Well-formed, but against a rule of the document. */
  | "Invalid"
  /** Another attempt has replaced this one. */
  | "Superseded"
  /** The account that the service was set up with keeps its role and its existence. */
  | "LastAdmin"

/** A refusal with a reason of the list. */
export const deny = (reason: Reason, detail?: string): Decision<never> => refuse(reason, detail)

/** Cells that refuse these messages for one reason. */
export const denyEach = <Tag extends string>(
  reason: Reason,
  ...messages: ReadonlyArray<Tag>
): { readonly [M in Tag]: () => Decision<never> } =>
  // The keys are exactly the messages.
  Object.fromEntries(messages.map((message) => [message, () => deny(reason)])) as {
    [M in Tag]: () => Decision<never>
  }

/** Whether a conditional change is too late: the state no longer has the version it expects. */
export const isOutdated = (
  { version }: { readonly version: number },
  { ifVersion }: { readonly ifVersion?: number }
): boolean => ifVersion !== undefined && ifVersion !== version

/** Why the caller is neither the owner nor, if `orAdmin`, an admin; undefined if it is. */
export const notOwner = (
  owner: string,
  { account, admin }: Caller,
  orAdmin: boolean
): Reason | undefined => {
  if (account === owner || (orAdmin && admin)) return undefined
  return account === undefined ? "Unauthenticated" : "Forbidden"
}
