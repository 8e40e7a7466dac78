/** Why a behavior refuses: the closed list that the HTTP side maps to status codes. */
import { type Decision, refuse } from "../runtime/index.ts"

export type Reason =
  /** There is no such resource, or a capability for it is wrong. */
  | "NotFound"
  /** It was here, and was deleted. */
  | "Gone"
  /** The id or name belongs to another resource, or belonged to one. */
  | "Taken"
  /** No credentials, or a wrong secret. */
  | "Unauthenticated"
  /** The credentials are good, and do not allow this. */
  | "Forbidden"
  /** What it keeps has reached its bound. */
  | "Full"
  /** Too much of what it asked for is undone; later it may go. */
  | "Busy"
  /** If-Match or its like did not hold. */
  | "PreconditionFailed"
  /** An answer came before the one that it follows. */
  | "OutOfOrder"
  /** The conversation is over; its answers are read-only. */
  | "Ended"
  /** Well-formed, but against a rule of the document. */
  | "Invalid"
  /** Another attempt has taken this one's place. */
  | "Superseded"
  /** The account that the service was set up with keeps its role and its existence. */
  | "LastAdmin"

/** Whether a conditional change comes too late: the state is no longer the version it has seen. */
export const isOutdated = (
  { version }: { readonly version: number },
  { ifVersion }: { readonly ifVersion?: number }
): boolean => ifVersion !== undefined && ifVersion !== version

/** A refusal whose reason is one of the list. */
export const deny = (reason: Reason, detail?: string): Decision<never> => refuse(reason, detail)
