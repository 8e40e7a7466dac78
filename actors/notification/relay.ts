/** One attempt at a recipient: inside, or over HTTP by the rules of outbound requests. */
import { Clock, Effect, Tracer } from "effect"
import type { Address, AskFailure, Peers, StorageFailure } from "../../runtime/index.ts"
import { awayRetryMs } from "../limits.ts"
import type { Links } from "../links.ts"
import type { DeliveryOutcome, Outbound, OutboundContent } from "../outbound/index.ts"
import { fragmentOf } from "./decide.ts"
import { deliverLocally, nameOf } from "./local-delivery.ts"
import type { RelayResources } from "./memory-budget.ts"
import type { NotificationAction, NotificationMessage } from "./protocol.ts"

/** What attempts need. */
export interface RelayDependencies {
  readonly outbound: Outbound
  readonly links: Links
  readonly documents: {
    /** A relayed notification's fragment as JSON-LD, for the inbox at `to`. */
    readonly activityOf: (fragment: string, to: string) => string
  }
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
}

export type Attempt = Extract<NotificationAction, { readonly _tag: "Attempt" }>

type Failure = AskFailure | StorageFailure

const documentOf = (
  { documents }: RelayResources,
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

const deferred: Effect.Effect<DeliveryOutcome> = Effect.map(
  Clock.currentTimeMillis,
  (nowMs) => ({ _tag: "Deferred", untilMs: nowMs + awayRetryMs })
)

/** What became of a handing over that was not made; nobody is told. */
const unwanted: DeliveryOutcome = { _tag: "Refused", problem: "no longer wanted" }

/** At a mailbox of this service; its node is told which request it follows from, as others are. */
const inside = (
  { links }: RelayDependencies,
  office: RelayResources,
  self: Address,
  peers: Peers,
  action: Attempt
): Effect.Effect<DeliveryOutcome | undefined, Failure> =>
  Effect.flatMap(documentOf(office, peers, self, action), (document) => {
    if (document === undefined || office.standing.isRemoved(self.id)) {
      return Effect.succeed(undefined)
    }
    const fragment = fragmentOf(document)
    if (fragment === undefined) throw new Error("the first item is no notification document")
    const { account, to, traceId } = action
    const span = Tracer.externalSpan({ traceId, spanId: office.spans.next(), sampled: true })
    return Effect.withParentSpan(
      deliverLocally(peers, links, { id: self.id, to, account, fragment }),
      span
    )
  })

/** Takes room for what is not at hand; it is given back when the scope of the attempt ends. */
class Portion {
  private taken = 0
  private readonly office: RelayResources

  constructor(office: RelayResources) {
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
 * Over HTTP. What waits for its turn holds no document: it is read when the turn has come, unless
 * the notification has been removed by then.
 */
const outside = (
  deps: RelayDependencies,
  office: RelayResources,
  self: Address,
  peers: Peers,
  action: Attempt,
  portion: Portion
): Effect.Effect<DeliveryOutcome | undefined> => {
  const { documents, links, outbound } = deps
  const { to, traceId } = action
  let found: "letter" | "nothing" | "away" = "letter"
  const letterOf = (body: string | undefined): OutboundContent | undefined => {
    if (body === undefined || office.standing.isRemoved(self.id)) {
      found = "nothing"
      return
    }
    const headers = {
      "Content-Type": "text/xml+rss; charset=utf-8",
      "Idempotency-Key": `"${nameOf("relay", self.id, to)}"`,
      traceparent: `00-${traceId}-${office.spans.next()}-01`
    }
    return { headers, body }
  }
  const putOff = (): undefined => {
    found = "away"
    return undefined
  }
  const letter = (): OutboundContent | undefined | Effect.Effect<OutboundContent | undefined> => {
    const atHand = action.document ?? office.documents.get(self.id)
    if (atHand !== undefined || office.standing.isRemoved(self.id)) return letterOf(atHand)
    if (!portion.take(self, action)) return putOff()
    return documentOf(office, peers, self, action).pipe(
      Effect.map(letterOf),
      Effect.catch(() => Effect.sync(putOff))
    )
  }
  const linkedData = ({ body, headers }: OutboundContent): OutboundContent => ({
    headers: { ...headers, "Content-Type": "application/ld+json" },
    body: documents.activityOf(fragmentOf(body) ?? "", to)
  })
  const handsOver = (uri: string): Effect.Effect<DeliveryOutcome> | undefined =>
    !links.isOwn(uri) ? undefined : inside(deps, office, self, peers, { ...action, to: uri }).pipe(
      Effect.catch(() => Effect.sync(putOff)),
      Effect.map((outcome) => {
        if (outcome === undefined && found === "letter") found = "nothing"
        return outcome ?? unwanted
      })
    )
  return Effect.flatMap(
    outbound.post({ uri: to, letter, discovers: true, linkedData, handsOver }),
    (outcome): Effect.Effect<DeliveryOutcome | undefined> => {
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
  office: RelayResources,
  self: Address,
  peers: Peers,
  { document, ...action }: Attempt
): Effect.Effect<NotificationMessage | void> => {
  const { attempt, recipient, to } = action
  const portion = new Portion(office)
  return Effect.suspend(() => {
    if (document !== undefined) office.documents.keep(self.id, document)
    office.standing.begin(self.id)
    if (!deps.links.isOwn(to)) return outside(deps, office, self, peers, action, portion)
    return portion.take(self, action) ? inside(deps, office, self, peers, action) : deferred
  }).pipe(
    Effect.catch(() => deferred),
    Effect.map((outcome): NotificationMessage | void => {
      if (outcome === undefined) return
      return { _tag: "Attempted", recipient, attempt, outcome, random: deps.random() }
    }),
    Effect.ensuring(Effect.sync(() => {
      office.standing.end(self.id)
      portion.giveBack()
    }))
  )
}
