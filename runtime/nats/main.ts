/** The store of a cluster of nodes on NATS JetStream, for definitions of actors. */
import { Layer } from "effect"
import { clusterPlacement, type Store } from "../index.ts"
import { assertSubjectPermission, connection, hmacAuthenticator, type NatsOptions, natsPings,
  natsRegistry, natsStorage, natsTransport } from "./index.ts"

/** How a node takes part in the cluster of a NATS store, and how it connects. */
export interface NatsStoreOptions extends Omit<NatsOptions, "servers" | "name"> {
  /**
   * The node's name, `[A-Za-z0-9_=-]+`, unique in the cluster. By default it is random. With a name
   * that stays, a node that crashed takes its shards again at once.
   */
  readonly node?: string
  /**
   * Signs the messages between the nodes; the same on all of them. Without it, the nodes trust
   * every client of the servers, so these must be on loopback addresses.
   */
  readonly secret?: string
  /** Buckets of a new cluster; an existing cluster must have as many. */
  readonly buckets?: number
}

/** The key of nodes without a secret: it protects nothing. */
const publicSecret = "restante"

/** The address of a server that only programs on this machine can reach. */
const loopback = /^(?:\w+:\/\/)?(?:[^@/]*@)?(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\/?$/

const assertSecret = (servers: ReadonlyArray<string>): void => {
  const open = servers.find((server) => !loopback.test(server))
  if (open === undefined) return
  // The URI of a server may contain a password.
  const shown = open.replace(/\/\/.*@/, "//")
  throw new TypeError(
    `the nodes on ${shown} have no secret, so they would trust every client of this server: ` +
      "give nats() the same `secret` on all nodes"
  )
}

/** On NATS a group ends with its slowest commit, so many small groups are in flight. */
const limits = { groupCommitsMax: 500, groupsInFlightMax: 4_000 }

/**
 * Actors on NATS JetStream, 2.12 or later: every node that starts with the same servers joins the
 * cluster, and takes a part of the actors. Throws a TypeError without a secret, unless all servers
 * are on loopback addresses.
 */
export const nats = (
  servers: string | ReadonlyArray<string>,
  { buckets, node = crypto.randomUUID(), secret, ...access }: NatsStoreOptions = {}
): Store => {
  const all = typeof servers === "string" ? [servers] : servers
  if (secret === undefined) assertSecret(all)
  const authenticator = hmacAuthenticator([new TextEncoder().encode(secret ?? publicSecret)])
  const ports = Layer.mergeAll(
    natsStorage(buckets === undefined ? {} : { buckets }),
    Layer.provideMerge(natsTransport(authenticator), Layer.effectDiscard(assertSubjectPermission)),
    Layer.provide(clusterPlacement({ node }), Layer.merge(natsRegistry, natsPings(authenticator)))
  )
  return {
    name: all.join(", "),
    ports: Layer.provide(ports, connection({ ...access, servers: all, name: `node ${node}` })),
    limits
  }
}
