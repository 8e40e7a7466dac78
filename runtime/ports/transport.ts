/**
 * The transport port: how a message reaches the node that owns an actor's shard, and how a hint
 * of a change reaches whoever watches. The contract is the suite `test/suites/transport.ts`.
 */
import { Context, type Effect, type Scope } from "effect"
import type { Address, AskTimeout, MessageTooLarge, NoOwner } from "../actor/index.ts"

/**
 * Answers one enveloped message (see `envelope.ts`) with an enveloped reply; never rejects.
 * undefined: it was not taken here, since the shard is another node's now.
 */
export type Serve = (
  to: Address,
  envelope: string,
  /** The asker's W3C trace context, where it has one. */
  trace?: string
) => Promise<string | undefined>

/** As what a node serves a shard: one of all the times that the shard was anybody's. */
export interface ShardTenure {
  /** Of this time alone, and later than any before it. */
  readonly claim: number
  /** The claim before it; undefined when there was none. */
  readonly after: number | undefined
  /** Its holder was gone, and gave nothing up. */
  readonly orphaned: boolean
}

/** The same for the one that serves it. */
export interface ShardClaim extends ShardTenure {
  /**
   * Whether no other node can have taken the shard: it is served, or is being given up. A node that
   * was out of touch may have lost it without knowing.
   */
  readonly isHeld: () => boolean
}

/** Called with the hint that was announced; it must neither throw nor wait. */
export type HintListener = (hint: string) => void

export interface TransportApi {
  /**
   * Asks the owner of the address's shard, wherever it is. NoOwner says that nobody has taken the
   * message, so that it may be sent again. `trace` is the asker's W3C trace context.
   */
  readonly request: (
    to: Address,
    envelope: string,
    deadlineMs: number,
    trace?: string
  ) => Effect.Effect<string, NoOwner | AskTimeout | MessageTooLarge>
  /**
   * Takes the messages of a shard until the scope closes. One server a shard at a time, but for a
   * short while after it was closed, when a message may reach the old one and the new. `held`
   * where there are other nodes, which can so tell what became of a message.
   */
  readonly serve: (
    shard: number,
    serve: Serve,
    held?: ShardClaim
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Tells every watcher of the address, on every node, at most once; never waits. */
  readonly announce: (about: Address, hint: string) => void
  /** Listens to announcements about one address; the result ends it. */
  readonly watch: (about: Address, listener: HintListener) => () => void
}

export class Transport extends Context.Service<Transport, TransportApi>()(
  "restante/runtime/Transport"
) {}
