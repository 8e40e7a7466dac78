/**
 * The pauses of outgoing mailboxes, as far as a node knows them. Each attempt of a relay asks for
 * them: without this it would cost a message.
 */
import { Cause, Clock, Deferred, Effect, Exit } from "effect"
import { LRUCache } from "lru-cache"
import { type AskFailure, isRefusal, type Peers, StorageUnavailable } from "../../runtime/index.ts"
import { relayPausesFreshMs, relayPausesKnownMax, relayPausesRetryMs } from "../limits.ts"
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
export const heldBy = ({ origins, pausedAtMs }: Pauses, to: string): HeldAttempt | undefined => {
  if (pausedAtMs !== undefined) return { _tag: "Held" }
  if (origins.length === 0) return undefined
  const origin = parseUrl(to)?.origin
  return origin !== undefined && origins.some((one) => one.origin === origin)
    ? { _tag: "Held", origin }
    : undefined
}

interface Lookup<Found> {
  readonly found: Found
  /** Until when it counts, ms since the epoch. */
  readonly untilMs: number
}

/** Whether a lookup that counts for so long still does; the clock may have been set back. */
const isFresh = ({ untilMs }: Lookup<unknown>, nowMs: number, freshMs: number): boolean =>
  untilMs > nowMs && untilMs <= nowMs + freshMs

/** A lookup that was interrupted has no result for those that share it. */
const resultFor = (
  exit: Exit.Exit<Pauses, AskFailure>
): Exit.Exit<Pauses, AskFailure> =>
  Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
    ? Exit.fail(new StorageUnavailable({ detail: "the lookup of pauses was interrupted" }))
    : exit

/**
 * What one node knows. An account may have thousands of attempts that are due: they share one
 * lookup, and fail at once for a while after it has failed. Otherwise an outgoing mailbox that is
 * away would take the room for asks of the whole node.
 */
export class NodePauses implements RelayPauses {
  private readonly known = new LRUCache<string, Lookup<Pauses>>({ max: relayPausesKnownMax })
  private readonly failed = new LRUCache<string, Lookup<AskFailure>>({ max: relayPausesKnownMax })
  private readonly pending = new Map<string, Deferred.Deferred<Pauses, AskFailure>>()

  find(
    peers: Peers,
    account: string,
    to: string
  ): Effect.Effect<HeldAttempt | undefined, AskFailure> {
    return Effect.map(this.pausesOf(peers, account), (pauses) => heldBy(pauses, to))
  }

  /** The pauses of an outgoing mailbox, as they were within `relayPausesFreshMs`. */
  pausesOf(peers: Peers, account: string): Effect.Effect<Pauses, AskFailure> {
    return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
      const known = this.known.get(account)
      if (known !== undefined && isFresh(known, nowMs, relayPausesFreshMs)) {
        return Effect.succeed(known.found)
      }
      const failed = this.failed.get(account)
      if (failed !== undefined && isFresh(failed, nowMs, relayPausesRetryMs)) {
        return Effect.fail(failed.found)
      }
      return this.shared(peers, account, nowMs)
    })
  }

  findCurrent(
    peers: Peers,
    account: string,
    to: string
  ): Effect.Effect<HeldAttempt | undefined, AskFailure> {
    return Effect.flatMap(
      Clock.currentTimeMillis,
      (nowMs) => Effect.map(this.ask(peers, account, nowMs), (pauses) => heldBy(pauses, to))
    )
  }

  /** The pauses were these at a time. A later version that is known stays. */
  note(account: string, pauses: Pauses, nowMs: number): void {
    const known = this.known.peek(account)
    if (known !== undefined && known.found.version > pauses.version) return
    this.known.set(account, { found: pauses, untilMs: nowMs + relayPausesFreshMs })
  }

  private ask(peers: Peers, account: string, nowMs: number): Effect.Effect<Pauses, AskFailure> {
    const message = { _tag: "Describe", caller: { account, admin: false } } as const
    return Effect.map(askOutgoingMailbox(peers, account, message), (reply) => {
      const pauses = !isRefusal(reply) && reply._tag === "Described" ? reply.view : noPauses
      this.note(account, pauses, nowMs)
      return pauses
    })
  }

  /** The lookup of the account that is under way, or a new one. */
  private shared(peers: Peers, account: string, nowMs: number): Effect.Effect<Pauses, AskFailure> {
    const pending = this.pending.get(account)
    if (pending !== undefined) return Deferred.await(pending)
    const begun = Deferred.makeUnsafe<Pauses, AskFailure>()
    this.pending.set(account, begun)
    return this.ask(peers, account, nowMs).pipe(
      Effect.tapError((failure) =>
        Effect.map(Clock.currentTimeMillis, (failedMs) => {
          this.failed.set(account, { found: failure, untilMs: failedMs + relayPausesRetryMs })
        })
      ),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          this.pending.delete(account)
          Deferred.doneUnsafe(begun, resultFor(exit))
        })
      )
    )
  }
}
