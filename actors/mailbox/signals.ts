/**
 * The signals that a mailbox's commits send: to its push registrations, to the background tasks of
 * its notifications, and to the idempotency keys of its deposits. The ids of these actors begin
 * with the mailbox's name, so that they are in its shard. Pure.
 */
import { type Address, address, type Variant } from "../../runtime/index.ts"
import type { MailboxState } from "./protocol.ts"

export const registrationKind = "registration"

export const backgroundTaskKind = "background-task"

export const idempotencyKind = "idempotency"

type Open = Variant<MailboxState, "Open">

/** What this module needs of a decision. */
interface SignalingDecision {
  signal(address: Address, hint?: number): unknown
}

/** The part of a registration's id after the `=`. */
export const partOf = (id: string): string => id.slice(id.indexOf("=") + 1)

/** Signals all registrations: the log now ends at `upTo`; undefined if the mailbox is gone. */
export const signalRegistrations = (
  decision: SignalingDecision,
  self: Address,
  registrations: ReadonlyArray<string>,
  upTo: number | undefined
): void => {
  for (const part of registrations) {
    decision.signal(address(registrationKind, `${self.id}=${part}`), upTo)
  }
}

/** Signals one kind of background task for each of these notifications. */
export const signalBackgroundTasks = (
  decision: SignalingDecision,
  self: Address,
  numbers: ReadonlyArray<number>,
  kind: "fetch" | "inlined" | "received" | "retrieved"
): void => {
  for (const n of numbers) {
    decision.signal(address(backgroundTaskKind, `${self.id}=${n.toString(36)}-${kind}`))
  }
}

/** Signals the tasks that remove what came with these notifications, which are removed. */
export const signalRemoval = (
  decision: SignalingDecision,
  { fetched, inlined }: { readonly fetched: number; readonly inlined: number },
  self: Address,
  numbers: ReadonlyArray<number>
): void => {
  if (fetched > 0) signalBackgroundTasks(decision, self, numbers, "fetch")
  if (inlined > 0) signalBackgroundTasks(decision, self, numbers, "inlined")
}

/** Signals a deposit's idempotency key: the commit stores the deposit as item `n`. */
export const signalKey = (
  decision: SignalingDecision,
  self: Address,
  key: string,
  n: number
): void => {
  decision.signal(address(idempotencyKind, `${self.id}=${key}`), n)
}

/** Whether a deposit signals registrations or background tasks. */
export const isWatched = ({ registrations, settings }: Open): boolean =>
  registrations.length > 0 || settings.fetch === "eager" || settings.receipts === "received"

/** Signals what depends on the deposit that the commit stores as item `n`. */
export const signalDeposit = (
  decision: SignalingDecision,
  { registrations, settings }: Open,
  self: Address,
  n: number
): void => {
  signalRegistrations(decision, self, registrations, n)
  if (settings.fetch === "eager") signalBackgroundTasks(decision, self, [n], "fetch")
  if (settings.receipts === "received") {
    signalBackgroundTasks(decision, self, [n], "received")
  }
}
