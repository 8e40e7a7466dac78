/**
 * Whom a mailbox's commits wake: its push registrations, and the errands for its notifications.
 * Their ids begin with its name, so that they are of its shard. Pure.
 */
import { type Address, address, type Variant } from "../../runtime/index.ts"
import type { MailboxState } from "./protocol.ts"

export const registrationKind = "registration"

export const backgroundTaskKind = "background-task"

type Open = Variant<MailboxState, "Open">

/** A decision, of which only this is used here. */
interface Waking {
  signal(address: Address, atMs: number, hint?: number): unknown
}

/** What stands after the `=` of an id. */
export const partOf = (id: string): string => id.slice(id.indexOf("=") + 1)

/**
 * Wakes all registrations: there is something to push, up to item `upTo` of the log, or the
 * mailbox is gone (undefined).
 */
export const signalRegistrations = (
  decision: Waking,
  self: Address,
  registrations: ReadonlyArray<string>,
  nowMs: number,
  upTo: number | undefined
): void => {
  for (const part of registrations) {
    decision.signal(address(registrationKind, `${self.id}=${part}`), nowMs, upTo)
  }
}

/** Wakes the errands of one duty for these notifications. */
export const signalBackgroundTasks = (
  decision: Waking,
  self: Address,
  numbers: ReadonlyArray<number>,
  duty: "fetch" | "received" | "retrieved",
  nowMs: number
): void => {
  for (const n of numbers) {
    decision.signal(address(backgroundTaskKind, `${self.id}=${n.toString(36)}-${duty}`), nowMs)
  }
}

/** Whether a deposit wakes anybody. */
export const isWatched = ({ registrations, settings }: Open): boolean =>
  registrations.length > 0 || settings.fetch === "eager" || settings.receipts === "received"

/** Wakes whom a deposit wakes. */
export const signalsForDeposit = (
  decision: Waking,
  { registrations, settings }: Open,
  self: Address,
  n: number,
  nowMs: number
): void => {
  signalRegistrations(decision, self, registrations, nowMs, n)
  if (settings.fetch === "eager") signalBackgroundTasks(decision, self, [n], "fetch", nowMs)
  if (settings.receipts === "received") {
    signalBackgroundTasks(decision, self, [n], "received", nowMs)
  }
}
