/** The backend of a node: the embedded store of a single node, or NATS JetStream in a cluster. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Keyring, serviceFormat } from "../../actors/index.ts"
import { randomId } from "../../http/index.ts"
import { embedded, embeddedView, makeFolders,
  type OpenFailure } from "../../runtime/embedded/index.ts"
import { type Blobs, clusterPlacement, type Limits, makeMemoryView, type NodeNameTaken,
  type OpenView, type Placement, type Records, singleNodePlacement, type Storage,
  type StoreContents, type Transport } from "../../runtime/index.ts"
import { assertSubjectPermission, assertWhole, type BucketsDiffer, connection, hmacAuthenticator,
  natsBlobs, natsContents, type NatsOptions, natsPings, natsRecordsWith, natsRegistry, natsStorage,
  type NatsTooOld, natsTransport } from "../../runtime/nats/index.ts"
import { reasonOf } from "../command-failure.ts"
import { announceKeys, type SecretKeyUnusable } from "../secret-key/index.ts"
import { isLoopback, isNodeName, isTls, type NodeSettings } from "../settings/index.ts"

/** The file in the data directory in which a node of a cluster stores its name. */
const nameFile = "node-id"

/** The name of a node that is not in a cluster. */
const singleNodeName = "sole"

/** A node of a cluster has no name, because it cannot read or create `file`. */
export class NodeUnnamed extends Schema.TaggedError<NodeUnnamed>()("NodeUnnamed", {
  file: Schema.String,
  detail: Schema.String
}) {}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined

/** Stores a new name, unless the file exists. */
const createNameFile = (dataDir: string, file: string): void => {
  makeFolders(dataDir)
  try {
    writeFileSync(file, `${randomId()}\n`, { flag: "wx", flush: true })
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
}

/** The name in the file, which is created if it does not exist. */
const storedName = (dataDir: string): Effect.Effect<string, NodeUnnamed> => {
  const file = join(dataDir, nameFile)
  const read = (): string => {
    createNameFile(dataDir, file)
    const name = readFileSync(file, "utf8").trim()
    if (!isNodeName(name)) throw new Error("its text is not a valid node name")
    return name
  }
  return Effect.try({
    try: read,
    catch: (error) => new NodeUnnamed({ file, detail: reasonOf(error) })
  })
}

/** Whether the node is in a cluster. */
export const isClustered = ({ natsUrl }: NodeSettings): boolean => natsUrl !== undefined

/** The node's name. It stays the same at each start, since unfinished work refers to it. */
export const nodeNameOf = (settings: NodeSettings): Effect.Effect<string, NodeUnnamed> => {
  if (!isClustered(settings)) return Effect.succeed(singleNodeName)
  return settings.nodeId === undefined
    ? storedName(settings.dataDir)
    : Effect.succeed(settings.nodeId)
}

/**
 * The bounds of group commits. The embedded store flushes one group while the node replies to the
 * messages of the previous group: groups are large enough to share a flush, and small enough to
 * overlap on a busy node. On NATS a group ends with its slowest commit, which must not delay other
 * groups. So many groups may be in flight, and the storage batches the messages to the servers.
 */
export const groupLimits = (settings: NodeSettings): Partial<Limits> =>
  isClustered(settings)
    ? { groupCommitsMax: 500, groupsInFlightMax: 4_000 }
    : { groupCommitsMax: 64 }

/** The fields that are not undefined. */
const present = <Fields extends object>(fields: Fields) =>
  // The type of `Object.fromEntries` does not express the omitted fields.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof Fields]?: Exclude<Fields[K], undefined>
  }

const secretText = (secret: Redacted.Redacted | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

/**
 * The options of the connection to NATS. The servers show `node` in the connection's name. The
 * client ignores the scheme of an address, so `tls` is what requires TLS. Servers of this machine
 * may announce others, to which the node would send everything in the clear: it ignores these.
 */
export const natsOptions = (
  settings: NodeSettings,
  servers: ReadonlyArray<string>,
  node: string
): NatsOptions => {
  const tls = present({
    caFile: settings.natsCa,
    certFile: settings.natsCert,
    keyFile: settings.natsKey
  })
  return {
    servers,
    name: `restante ${node}`,
    ...present({
      user: settings.natsUser,
      pass: secretText(settings.natsPassword),
      token: secretText(settings.natsToken),
      nkeySeed: secretText(settings.natsNkeySeed),
      credsFile: settings.natsCreds,
      tls: Object.keys(tls).length > 0 || servers.some(isTls) ? tls : undefined,
      ignoreAnnounced: settings.natsInsecure === 0 && servers.every(isLoopback) &&
        !servers.some(isTls),
      replicas: settings.natsReplicas
    })
  }
}

export type Ports = Storage | Transport | Records | Blobs | StoreContents | Placement

export type BackendFailure =
  | OpenFailure
  | NatsTooOld
  | BucketsDiffer
  | NodeNameTaken
  | NodeUnnamed
  | SecretKeyUnusable

/** The node's view of the records: in its data directory, or in memory if that is unusable. */
const recordsView = ({ dataDir, storageEngine }: NodeSettings, node: string): OpenView => {
  const folder = join(dataDir, "view", node)
  return embeddedView(folder, storageEngine).pipe(Effect.catch((failure) => {
    const detail = "detail" in failure ? failure.detail : "another process has it"
    const text = `${folder} cannot be used (${detail}): the view of the records is in memory`
    return Effect.as(Effect.logWarning(text), makeMemoryView())
  }))
}

const natsBackend = (
  settings: NodeSettings,
  servers: ReadonlyArray<string>,
  node: string,
  keyring: Keyring
) => {
  const authenticator = hmacAuthenticator(keyring.keysFor("envelopes between nodes"))
  return Layer.mergeAll(
    natsStorage({ buckets: settings.clusterBuckets }),
    natsRecordsWith(recordsView(settings, node)),
    natsBlobs(),
    natsContents({ buckets: settings.clusterBuckets }),
    Layer.provideMerge(
      natsTransport(authenticator),
      Layer.effectDiscard(assertSubjectPermission)
    ),
    // The registry is also an output of this layer: the nodes agree on the service's key by it.
    // This node becomes a member before it checks for a running restore, because a restore checks
    // for members: at least one of the two notices the other.
    Layer.effectDiscard(assertWhole).pipe(
      Layer.provideMerge(
        Layer.provide(clusterPlacement({ node, format: serviceFormat }), natsPings(authenticator))
      ),
      // A node with another key of stored secrets does not become a member.
      Layer.provideMerge(Layer.effectDiscard(announceKeys(keyring))),
      Layer.provideMerge(natsRegistry)
    )
  ).pipe(Layer.provide(connection(natsOptions(settings, servers, node))))
}

/** The layer of all ports of the runtime for these settings. `node` is the node's name. */
export const backend = (
  settings: NodeSettings,
  node: string,
  keyring: Keyring
): Layer.Layer<Ports, BackendFailure> =>
  settings.natsUrl === undefined
    ? Layer.merge(
      embedded(settings.dataDir, { engine: settings.storageEngine }),
      singleNodePlacement
    )
    : natsBackend(settings, settings.natsUrl, node, keyring)
