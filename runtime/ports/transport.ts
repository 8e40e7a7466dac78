/**
 * The transport port: it sends messages to the node that owns an actor's shard, and hints about
 * changes to their listeners. The contract is the suite `test/suites/transport.ts`.
 */
import { Context, type Effect, type Scope } from "effect"
import type { Address, AskTimeout, MessageTooLarge, NoOwner } from "../actor/index.ts"

/**
 * Answers one enveloped message (see `envelope.ts`) with an enveloped reply; never rejects.
 * undefined: this node did not accept the message, because it does not own the shard.
 */
export type Serve = (
  to: Address,
  envelope: string,
  /** The caller's W3C trace context, if it has one. */
  trace?: string
) => Promise<string | undefined>

/** One period in which one node owns a shard. */
export interface ShardTenure {
  /** Number of the claim; it is greater than the number of every earlier claim of the shard. */
  readonly claim: number
  /** Number of the previous claim; undefined for the first one. */
  readonly after: number | undefined
  /** The previous owner ended without releasing its claim. */
  readonly orphaned: boolean
}

/** A tenure of this node. */
export interface ShardClaim extends ShardTenure {
  /**
   * Whether no other node can own the shard: this node serves it or is releasing it. A node that
   * was disconnected may have lost the shard without noticing.
   */
  readonly isHeld: () => boolean
}

/** Receives an announced hint; must neither throw nor block. */
export type HintListener = (hint: string) => void

/** What a node has sent to NATS, since it started, and whether it is connected. */
export interface Traffic {
  readonly messages: number
  /** Turns of the event loop in which it sent messages; those of a turn go out in one write. */
  readonly writes: number
  readonly isConnected: boolean
}

/** Why a request of another node has no reply. Only NoOwner proves that no node has accepted it. */
export type RequestFailure = NoOwner | AskTimeout | MessageTooLarge

/** Receives the reply to a request, or why there is none; must not throw. */
export type RequestDone = (failure: RequestFailure | undefined, reply: string) => void

/** Messages between the nodes of a cluster, as {@link Transport} provides them. */
export interface TransportApi {
  /**
   * Sends a message to the owner of the address's shard; calls `done` once, with the reply or the
   * failure. With NoOwner no node accepted the message, so the caller may send it again. `trace` is
   * the caller's W3C trace context.
   */
  readonly request: (
    to: Address,
    envelope: string,
    deadlineMs: number,
    done: RequestDone,
    trace?: string
  ) => void
  /**
   * Receives the messages of a shard until the scope closes. A shard has one server at a time; for
   * a short time after a scope closed, a message may reach the old and the new server. Clusters
   * pass `claim`, by which the nodes determine whether an earlier owner processed a message.
   */
  readonly serve: (
    shard: number,
    serve: Serve,
    claim?: ShardClaim
  ) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Sends a hint to every listener of the address on every node, at most once; never blocks. A hint
   * is one line, without a line feed: the hints of a turn may travel in one message.
   */
  readonly announce: (about: Address, hint: string) => void
  /** Calls the listener with each hint about an address; the result stops it. */
  readonly watch: (about: Address, listener: HintListener) => () => void
  /** Absent where there is no network. */
  readonly traffic?: () => Traffic
}

/** The port to the other nodes: requests to the owners of shards, and hints about actors. */
export class Transport extends Context.Service<Transport, TransportApi>()(
  "restante/runtime/Transport"
) {}
