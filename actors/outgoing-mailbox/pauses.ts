/**
 * The pauses of outgoing mailboxes, as far as a node knows them. Each attempt of a relay asks for
 * them: without this it would cost a message.
 */
import { Clock, Effect } from "effect"
import { LRUCache } from "lru-cache"
import { type AskFailure, isRefusal, type Peers } from "../../runtime/index.ts"
import { relayPausesFreshMs, relayPausesKnownMax } from "../limits.ts"
import type { HeldAttempt, RelayPauses } from "../notification/index.ts"
import { parseUrl } from "../parse-url.ts"
import { askerOf } from "../schemas.ts"
import { outgoingMailboxKind, type OutgoingMailboxMessage, type OutgoingMailboxReply,
  type Pauses } from "./protocol.ts"

const askOutgoingMailbox = askerOf<OutgoingMailboxMessage, OutgoingMailboxReply>(
  outgoingMailboxKind
)

/** Nothing is paused, and nothing was. */
const noPauses: Pauses = { origins: [], version: 0 }

/** Why a relay to this URI is not made; undefined if nothing pauses it. */
const heldBy = ({ origins, pausedAtMs }: Pauses, to: string): HeldAttempt | undefined => {
  if (pausedAtMs !== undefined) return { _tag: "Held" }
  if (origins.length === 0) return undefined
  const origin = parseUrl(to)?.origin
  return origin !== undefined && origins.some((one) => one.origin === origin)
    ? { _tag: "Held", origin }
    : undefined
}

interface Lookup {
  readonly pauses: Pauses
  /** Until when it counts, ms since the epoch. */
  readonly untilMs: number
}

/** What one node knows. */
export class NodePauses implements RelayPauses {
  private readonly known = new LRUCache<string, Lookup>({ max: relayPausesKnownMax })

  find(
    peers: Peers,
    account: string,
    to: string
  ): Effect.Effect<HeldAttempt | undefined, AskFailure> {
    return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
      const known = this.known.get(account)
      // The clock may have been set back.
      const isFresh = known !== undefined && known.untilMs > nowMs &&
        known.untilMs <= nowMs + relayPausesFreshMs
      return isFresh
        ? Effect.succeed(heldBy(known.pauses, to))
        : this.findCurrent(peers, account, to)
    })
  }

  findCurrent(
    peers: Peers,
    account: string,
    to: string
  ): Effect.Effect<HeldAttempt | undefined, AskFailure> {
    return Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
      askOutgoingMailbox(peers, account, {
        _tag: "Describe",
        caller: { account, admin: false }
      }).pipe(Effect.map((reply) => {
        const isKnown = !isRefusal(reply) && reply._tag === "Described"
        const pauses = isKnown ? reply.view : noPauses
        this.note(account, pauses, nowMs)
        return heldBy(pauses, to)
      })))
  }

  /** The pauses were these at a time. A later version that is known stays. */
  note(account: string, pauses: Pauses, nowMs: number): void {
    const known = this.known.peek(account)
    if (known !== undefined && known.pauses.version > pauses.version) return
    this.known.set(account, { pauses, untilMs: nowMs + relayPausesFreshMs })
  }
}
