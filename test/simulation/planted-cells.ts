/** Bugs to be found that are planted in the tables of behaviors, one cell or action each. */
import { mailboxKind, notificationKind, sessionKind } from "../../actors/index.ts"
import type { AnyBehavior, Decision } from "../../runtime/index.ts"
import { Effect } from "effect"
import type { WorldSeams } from "./world.ts"

interface Fields {
  readonly _tag: string
  readonly [field: string]: unknown
}
type Cell = (state: Fields, message: Fields, context: unknown) => Decision<Fields>
type Cells = Readonly<Record<string, Readonly<Record<string, Cell>>>>

/** The behaviors, that of this kind as `change` makes it. */
const changing = (kind: string, change: (one: AnyBehavior) => AnyBehavior): WorldSeams => ({
  behaviors: (all) => all.map((one) => one.kind === kind ? change(one) : one)
})

/** The same with one cell in place of that of the table. */
const withCell = (
  kind: string,
  state: string,
  message: string,
  make: (cell: Cell, cells: Cells) => Cell
): WorldSeams =>
  changing(kind, (one) => {
    // The registry has lost the types of the behavior; each cell here knows its own.
    const cells = one.table as unknown as Cells
    const cell = cells[state]?.[message]
    if (cell === undefined) throw new RangeError(`${kind} has no ${state} x ${message}`)
    return {
      ...one,
      table: { ...cells, [state]: { ...cells[state], [message]: make(cell, cells) } }
    }
  })

/** How long an attempt waits that does not ask again whether it is wanted, ms. */
const WAITS_MS = 3_000
const DIGEST_CHARS = 22

/** A session that is over takes its last answer once more. */
const answeredTwice = withCell(sessionKind, "Crossed", "Answer", (_, cells) => {
  const again = cells["AwaitingHardQuestion"]?.["Answer"]
  if (again === undefined) throw new RangeError("a session takes no last answer")
  return again
})

/** Nobody who is registered is told of a removal. */
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

/** What is handed over again is not known again. */
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

/** What recipients ask for is not heard. */
const retryAfterUnheard = withCell(notificationKind, "Queued", "Attempted", (cell) =>
(
  state,
  message,
  context
) => {
  // An attempt tells its outcome.
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

/** Each bug by its name. */
export const plantedCells: Readonly<Record<string, WorldSeams>> = {
  "answered-twice": answeredTwice,
  "removal-untold": removalUntold,
  "handed-over-again": handedOverAnew,
  "retry-after-unheard": retryAfterUnheard,
  "sent-after-deletion": sentAfterDeletion
}
