/** One attempt at a recipient: inside, or over HTTP by the rules of outbound requests. */
import { Clock, Effect } from "effect"
import { isRefusal } from "../../runtime/index.ts"
import type { Address, AskFailure, Peers, Refusal, StorageFailure } from "../../runtime/index.ts"
import type { Letter, Outbound, Outcome } from "../delivery/protocol.ts"
import type { Links } from "../links.ts"
import { awayRetryMs } from "../limits.ts"
import { fragmentOf } from "./decide.ts"
import { handOver, nameOf } from "./handover.ts"
import type { Office } from "./office.ts"
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
  { documents }: Office,
  peers: Peers,
  self: Address,
  { document = documents.get(self.id) }: Attempt
): Effect.Effect<string | undefined, StorageFailure> =>
  document === undefined
    ? Effect.map(peers.read(self, 1, 1), ([item]) => {
      if (item?.n !== 1) return
      documents.keep(self.id, item.value)
      return item.value
    })
    : Effect.succeed(document)

const deferred: Effect.Effect<Outcome> = Effect.map(
  Clock.currentTimeMillis,
  (nowMs) => ({ _tag: "Deferred", untilMs: nowMs + awayRetryMs })
)

/** At a mailbox of this service. */
const inside = Effect.fnUntraced(function*(
  { links }: RelayDependencies,
  office: Office,
  self: Address,
  peers: Peers,
  action: Attempt
): Effect.fn.Return<Outcome | undefined, Failure> {
  if (!(yield* mayAttempt(peers, self, action))) return undefined
  const document = yield* documentOf(office, peers, self, action)
  if (document === undefined) return undefined
  const fragment = fragmentOf(document)
  if (fragment === undefined) throw new Error("the first item is no notification document")
  const { account, to } = action
  return yield* handOver(peers, links, { id: self.id, to, account, fragment })
})

/** Takes room for what is not at hand; it is given back when the scope of the attempt ends. */
class Portion {
  private taken = 0
  private readonly office: Office

  constructor(office: Office) {
    this.office = office
  }

  take(self: Address, { chars, document = this.office.documents.get(self.id) }: Attempt): boolean {
    if (document !== undefined || this.taken > 0) return true
    if (!this.office.room.take(chars)) return false
    this.taken = chars
    return true
  }

  giveBack(): void {
    this.office.room.give(this.taken)
    this.taken = 0
  }
}

/**
 * Over HTTP. What waits for its turn holds no document; when the turn is near it is asked whether
 * the attempt may start, and the document read.
 */
const outside = (
  { outbound }: RelayDependencies,
  office: Office,
  self: Address,
  peers: Peers,
  action: Attempt,
  portion: Portion
): Effect.Effect<Outcome | undefined, Failure> => {
  const { to, traceId } = action
  let found: "letter" | "nothing" | "away" = "letter"
  const letterOf = (body: string | undefined): Letter | undefined => {
    found = body === undefined ? "nothing" : "letter"
    return body === undefined ? undefined : {
      headers: {
        "Content-Type": "text/xml+rss; charset=utf-8",
        "Idempotency-Key": `"${nameOf("relay", self.id, to)}"`,
        traceparent: `00-${traceId}-${office.spans.next()}-01`
      },
      body
    }
  }
  const putOff = Effect.sync(() => {
    found = "away"
    return undefined
  })
  const letter = mayAttempt(peers, self, action).pipe(
    Effect.flatMap((may): Effect.Effect<Letter | undefined, StorageFailure> => {
      if (!may) return Effect.succeed(letterOf(undefined))
      if (!portion.take(self, action)) return putOff
      return Effect.map(documentOf(office, peers, self, action), letterOf)
    }),
    Effect.catch(() => putOff)
  )
  const isWanted = (): boolean => {
    if (!office.standing.isRemoved(self.id)) return true
    found = "nothing"
    return false
  }
  return Effect.flatMap(
    outbound.post({ uri: to, letter, isWanted, discovers: true }),
    (outcome): Effect.Effect<Outcome | undefined> => {
      if (found === "away") return deferred
      return Effect.succeed(found === "letter" ? outcome : undefined)
    }
  )
}

/**
 * Makes the attempt and gives what is to be told: nothing when it is no longer wanted; when a
 * store or actor is away it was none, and comes again a little later.
 */
export const makeAttempt = (
  deps: RelayDependencies,
  office: Office,
  self: Address,
  peers: Peers,
  { document, ...action }: Attempt
): Effect.Effect<Message | void> => {
  const { attempt, recipient, to } = action
  const portion = new Portion(office)
  return Effect.suspend(() => {
    if (document !== undefined) office.documents.keep(self.id, document)
    office.standing.begin(self.id)
    if (!deps.links.isOwn(to)) return outside(deps, office, self, peers, action, portion)
    return portion.take(self, action) ? inside(deps, office, self, peers, action) : deferred
  }).pipe(
    Effect.catch(() => deferred),
    Effect.map((outcome): Message | void => {
      if (outcome === undefined) return
      return { _tag: "Attempted", recipient, attempt, outcome, random: deps.random() }
    }),
    Effect.ensuring(Effect.sync(() => {
      office.standing.end(self.id)
      portion.giveBack()
    }))
  )
}
