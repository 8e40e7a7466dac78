/** Nodes of a cluster in one process over NATS, with actors that count. */
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Context, Exit, Layer, Logger, Scope } from "effect"
import { expect } from "vitest"
import type { AskFailure } from "../../../runtime/actor/errors.ts"
import type { ProcessName } from "../../../runtime/cluster/member-entry.ts"
import { type AnyBehavior, clusterPlacement, Placement, type Storage, System,
  type SystemApi } from "../../../runtime/index.ts"
import type { PlacementLimits } from "../../../runtime/limits.ts"
import { connection, Nats } from "../../../runtime/nats/connection/connection.ts"
import { natsRegistry } from "../../../runtime/nats/registry/registry.ts"
import { natsPings } from "../../../runtime/nats/transport/pings.ts"
import { natsTransport } from "../../../runtime/nats/transport/transport.ts"
import { run } from "../../suites/storage-probe.ts"
import { at, type Message, probe, type Reply } from "../probe.ts"
import { testAuthenticator } from "./keys.ts"

export interface Node {
  readonly system: SystemApi
  readonly placement: Placement["Service"]
  /** Stops with a drain. */
  readonly leave: () => Promise<void>
  /** Disconnects the node from its servers at once. */
  readonly vanish: () => Promise<void>
  readonly ask: (id: string, message: Message) => Promise<Reply | string>
}

/** How soon nodes are given up, where nothing else is said. */
const sooner = { ttlMs: 4_000, refreshMs: 500, marginMs: 1_000, refreshDeadlineMs: 500 }

export interface Started {
  readonly name: string
  readonly url: string
  /** The storage of all nodes of a cluster. */
  readonly storage: Layer.Layer<Storage, unknown, Nats>
  /** The node's process name, if it must differ from this process. */
  readonly process?: ProcessName
  /** Shorter than by default, unless the test must tolerate a busy machine. */
  readonly limits?: Partial<PlacementLimits>
  /** The newest format that the node's program reads, and its actors. */
  readonly format?: number
  readonly behavior?: AnyBehavior
  readonly askDeadlineMs?: number
}

/**
 * Closes a connection, and waits until the server has noticed. What the server sends to it until
 * then is lost, and an ask of another node that is lost in this way has no known outcome.
 */
const disconnected = async (nc: NatsConnection, url: string): Promise<void> => {
  const subject = `connected.${crypto.randomUUID()}`
  nc.subscribe(subject, { callback: (_, message) => void message.respond() })
  await nc.flush()
  const observer = await connect({ servers: [url] })
  await nc.close()
  const isConnected = () =>
    observer.request(subject, "", { timeout: 1_000 }).then(
      () => true,
      (error: unknown) => !(error instanceof Error && error.message.includes("no responders"))
    )
  await expect.poll(isConnected, { timeout: 60_000 }).toBe(false)
  await observer.close()
}

export const start = async (
  { askDeadlineMs, behavior = probe(), format = 1, limits = sooner, name, process, storage, url }:
    Started
): Promise<Node> => {
  const scope = await run(Scope.make())
  const known = process === undefined ? {} : { process }
  const nats = connection({ servers: [url], name })
  const ports = Layer.mergeAll(
    storage,
    natsTransport(testAuthenticator),
    Layer.provide(
      clusterPlacement({ node: name, format, limits, ...known }),
      Layer.merge(natsRegistry, natsPings(testAuthenticator))
    )
  ).pipe(Layer.provideMerge(nats))
  const deadline = askDeadlineMs === undefined ? {} : { limits: { askDeadlineMs } }
  const system = System.layer({ behaviors: [behavior], format, ...deadline })
  const layer = Layer.provideMerge(system, ports).pipe(Layer.provide(Logger.layer([])))
  const context = await run(Layer.buildWithScope(layer, scope))
  const api = Context.get(context, System)
  let left = false
  const node: Node = {
    system: api,
    placement: Context.get(context, Placement),
    leave: async () => {
      if (left) return
      left = true
      await run(api.drain)
      await run(Scope.close(scope, Exit.void))
    },
    vanish: async () => {
      left = true
      await disconnected(Context.get(context, Nats).nc, url)
      await run(Scope.close(scope, Exit.void))
    },
    ask: (id, message) =>
      new Promise((resolve) => {
        api.askByCallback(at(id), message, (failure: AskFailure | undefined, reply) => {
          resolve(failure === undefined ? reply as Reply : failure._tag) // a probe replies so
        })
      })
  }
  return node
}

const shards = Array.from({ length: 256 }, (_, shard) => shard)

/** Each shard is owned by one of the nodes, and each node owns some. */
export const settled = (among: ReadonlyArray<Node>): Promise<void> =>
  expect.poll(() => {
    const owners = shards.map((shard) => among.filter(({ placement }) => placement.owns(shard)))
    return owners.every(({ length }) => length === 1) &&
      among.every((node) => owners.some(([owner]) => owner === node))
  }, { timeout: 60_000, interval: 20 }).toBe(true)

export const add: Message = { _tag: "Add", by: 1 }

export const ids = Array.from({ length: 100 }, (_, n) => `actor-${n}`)

/** Asks every actor repeatedly at any running node; returns failures and the successes' count. */
export const load = (among: () => ReadonlyArray<Node>) => {
  const failures: Array<string> = []
  const counts = new Map<string, number>()
  let going = true
  const one = async (id: string, turn: number): Promise<void> => {
    if (!going) return
    const there = among()
    const answer = await there[turn % there.length]?.ask(id, add)
    if (typeof answer === "object") counts.set(id, (counts.get(id) ?? 0) + 1)
    else failures.push(`${id}: ${answer}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
    return one(id, turn + 1)
  }
  const all = Promise.all(ids.map(one))
  return async () => {
    going = false
    await all
    return { failures, counts }
  }
}
