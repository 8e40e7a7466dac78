/** Planted bugs in the tables of behaviors; each replaces one cell or action. */
import { mailboxKind, notificationKind, sessionKind } from "../../actors/index.ts"
import type { AnyBehavior, Decision } from "../../runtime/index.ts"
import { Effect } from "effect"
import { tooLargeForNow } from "./planted-stores.ts"
import type { WorldSeams } from "./world.ts"

interface Fields {
  readonly _tag: string
  readonly [field: string]: unknown
}
type Cell = (state: Fields, message: Fields, context: unknown) => Decision<Fields>
type Cells = Readonly<Record<string, Readonly<Record<string, Cell>>>>

/** The behaviors, with the one of this kind changed by `change`. */
const changing = (kind: string, change: (one: AnyBehavior) => AnyBehavior): WorldSeams => ({
  behaviors: (all) => all.map((one) => one.kind === kind ? change(one) : one)
})

/** The behavior with one cell replaced. */
export const withCell = (
  kind: string,
  state: string,
  message: string,
  make: (cell: Cell, cells: Cells) => Cell
): WorldSeams =>
  changing(kind, (one) => {
    // The list of behaviors has lost their types; each cell here has its own.
    const cells = one.table as unknown as Cells
    const cell = cells[state]?.[message]
    if (cell === undefined) throw new RangeError(`${kind} has no ${state} x ${message}`)
    return {
      ...one,
      table: { ...cells, [state]: { ...cells[state], [message]: make(cell, cells) } }
    }
  })

/** How long an attempt waits before it begins without checking whether it is obsolete, ms. */
const WAITS_MS = 3_000
const DIGEST_CHARS = 22

/** A completed session accepts its last answer twice. */
const answeredTwice = withCell(sessionKind, "Crossed", "Answer", (_, cells) => {
  const again = cells["AwaitingHardQuestion"]?.["Answer"]
  if (again === undefined) throw new RangeError("a session takes no last answer")
  return again
})

/** Removals are not pushed to registrations. */
const removalUntold = withCell(
  mailboxKind,
  "Open",
  "Remove",
  (cell) => (state, message, context) => {
    const decision = cell({ ...state, registrations: [] }, message, context)
    const { nextState } = decision
    if (nextState !== undefined) {
      decision.nextState = { ...nextState, registrations: state["registrations"] }
    }
    return decision
  }
)

/** A mailbox does not recognize a repeated local delivery. */
const handedOverAnew = withCell(
  mailboxKind,
  "Open",
  "Deposit",
  (cell) => (state, message, context) =>
    String(message["fragment"]).includes("<description>n")
      ? cell(state, {
        ...message,
        digest: String(Math.random()).slice(2).padEnd(DIGEST_CHARS, "-").slice(0, DIGEST_CHARS)
      }, context)
      : cell(state, message, context)
)

/** A mailbox forgets a relay that a reader has removed. */
const removedLocalDeliveryForgotten = withCell(
  mailboxKind,
  "Open",
  "Remove",
  (cell) => (state, message, context) => {
    const decision = cell(state, message, context)
    const { nextState } = decision
    if (nextState !== undefined) decision.nextState = { ...nextState, removedLocalDeliveries: [] }
    return decision
  }
)

/** The Retry-After of recipients is ignored. */
const retryAfterUnheard = withCell(notificationKind, "Queued", "Attempted", (cell) =>
(
  state,
  message,
  context
) => {
  // The attempt reports its outcome.
  const outcome = message["outcome"] as Fields
  return cell(state, { ...message, outcome: { ...outcome, retryAfterMs: 0 } }, context)
})

/** A notification is sent although it was deleted meanwhile. */
const sentAfterDeletion = changing(notificationKind, (one) => ({
  ...one,
  perform: (action: Fields, self, peers) =>
    action._tag === "Attempt"
      ? Effect.andThen(Effect.sleep(WAITS_MS), one.perform(action, self, peers))
      : one.perform(action, self, peers)
}))

/** More attempts than a recipient has. */
const APART = 1_000_000

/** A node does not recognize an attempt whose outcome it knows. */
const outcomeForgotten = changing(notificationKind, (one) => {
  let forgotten = 0
  return {
    ...one,
    perform: (action: Fields, self, peers) => {
      if (action._tag !== "Attempt") return one.perform(action, self, peers)
      const attempt = Number(action["attempt"]) + ++forgotten * APART
      return Effect.map(
        one.perform({ ...action, attempt }, self, peers),
        (message: Fields | void) => message && { ...message, attempt: action["attempt"] }
      )
    }
  }
})

/** All recipients are in one record, which outgrows what the store takes. */
const inOneRecord = withCell(
  notificationKind,
  "Absent",
  "Create",
  (cell) => (state, message, context) => {
    const decision = cell(state, message, context)
    if (decision.nextState?.["listed"] === undefined) return decision
    const { items: _, listed: __, ...whole } = decision.nextState
    // The first item is the document.
    decision.items = decision.items?.slice(0, 1)
    decision.nextState = whole
    return decision
  }
)

/** The planted bugs by name. */
export const plantedCells: Readonly<Record<string, WorldSeams>> = {
  "answered-twice": answeredTwice,
  "removal-untold": removalUntold,
  "handed-over-again": handedOverAnew,
  "removed-local-delivery-forgotten": removedLocalDeliveryForgotten,
  "retry-after-unheard": retryAfterUnheard,
  "sent-after-deletion": sentAfterDeletion,
  "outcome-forgotten": outcomeForgotten,
  "one-record": inOneRecord,
  "repeated-for-ever": { ...inOneRecord, storage: tooLargeForNow }
}
