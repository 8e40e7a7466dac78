/** One attempt at a recipient: inside, or over HTTP by the rules of outbound requests. */
import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { isRefusal } from "../../runtime/index.ts"
import type { Address, AskFailure, Peers, Refusal, StorageFailure } from "../../runtime/index.ts"
import type { Outbound, Outcome } from "../delivery/protocol.ts"
import type { Links } from "../links.ts"
import { awayRetryMs, documentCharsInFlightMax } from "../limits.ts"
import { fragmentOf } from "./decide.ts"
import { handOver, nameOf } from "./handover.ts"
import type { Action, Message, Reply } from "./protocol.ts"

/** What attempts need. */
export interface RelayDependencies {
  readonly outbound: Outbound
  readonly links: Links
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
}

export type Attempt = Extract<Action, { readonly _tag: "Attempt" }>
type Failure = AskFailure | StorageFailure

/** How much is read for attempts under way on this node: memory is bounded whatever waits. */
export class Room {
  private used = 0

  /** Takes room for so many characters, if there is; one document always fits. */
  take(chars: number): boolean {
    if (this.used > 0 && this.used + chars > documentCharsInFlightMax) return false
    this.used += chars
    return true
  }

  give(chars: number): void {
    this.used -= chars
  }
}

const mayAttempt = (
  peers: Peers,
  self: Address,
  { attempt, recipient }: Attempt
): Effect.Effect<boolean, AskFailure> => {
  const message: Message = { _tag: "MayAttempt", recipient, attempt }
  return Effect.map(peers.ask(self, message), (answered) => {
    // It answers in its own protocol, and in no other.
    const reply = answered as Reply | Refusal
    return !isRefusal(reply) && reply._tag === "May" && reply.attempt
  })
}

const documentOf = (
  peers: Peers,
  self: Address,
  { document }: Attempt
): Effect.Effect<string | undefined, StorageFailure> =>
  document === undefined
    ? Effect.map(peers.read(self, 1, 1), ([item]) => item?.n === 1 ? item.value : undefined)
    : Effect.succeed(document)

const deferred: Effect.Effect<Outcome> = Effect.map(
  Clock.currentTimeMillis,
  (nowMs) => ({ _tag: "Deferred", untilMs: nowMs + awayRetryMs })
)

/** Inside: nothing is sent that is not wanted. */
const inside = Effect.fnUntraced(function*(
  { links }: RelayDependencies,
  self: Address,
  peers: Peers,
  action: Attempt
): Effect.fn.Return<Outcome | undefined, Failure> {
  if (!(yield* mayAttempt(peers, self, action))) return undefined
  const document = yield* documentOf(peers, self, action)
  if (document === undefined) return undefined
  const fragment = fragmentOf(document)
  if (fragment === undefined) throw new Error("the first item is no notification document")
  const { account, to } = action
  return yield* handOver(peers, links, { id: self.id, to, account, fragment })
})

/** Over HTTP: whether it is wanted is asked when its turn has come. */
const outside = Effect.fnUntraced(function*(
  { outbound }: RelayDependencies,
  self: Address,
  peers: Peers,
  action: Attempt
): Effect.fn.Return<Outcome | undefined, Failure> {
  const document = yield* documentOf(peers, self, action)
  if (document === undefined) return undefined
  const asked: { answer: boolean | "away" } = { answer: true }
  const stillWanted = mayAttempt(peers, self, action).pipe(
    Effect.catch(() => Effect.succeed("away" as const)),
    Effect.map((answer) => {
      asked.answer = answer
      return answer === true
    })
  )
  const { to, traceId } = action
  const outcome = yield* outbound.post({
    uri: to,
    headers: {
      "Content-Type": "text/xml+rss; charset=utf-8",
      "Idempotency-Key": `"${nameOf("relay", self.id, to)}"`,
      traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01`
    },
    body: document,
    stillWanted,
    discovers: true
  })
  if (asked.answer === "away") return yield* deferred
  return asked.answer ? outcome : undefined
})

/**
 * Makes the attempt and gives what is to be told: nothing when it is no longer wanted; when a
 * store or actor is away it was none, and comes again a little later.
 */
export const makeAttempt = (
  deps: RelayDependencies,
  room: Room,
  self: Address,
  peers: Peers,
  action: Attempt
): Effect.Effect<Message | void> => {
  const chars = action.document === undefined ? action.chars : 0
  const way = deps.links.isOwn(action.to) ? inside : outside
  const outcome = Effect.suspend(() =>
    room.take(chars)
      ? Effect.ensuring(
        way(deps, self, peers, action).pipe(Effect.catch(() => deferred)),
        Effect.sync(() => room.give(chars))
      )
      : deferred
  )
  return Effect.map(outcome, (came): Message | void => {
    if (came === undefined) return
    const { attempt, recipient } = action
    return { _tag: "Attempted", recipient, attempt, outcome: came, random: deps.random() }
  })
}
