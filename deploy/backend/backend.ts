/** What a node stands on: the embedded store, alone; or NATS JetStream, as one of a cluster. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { randomId } from "../../http/index.ts"
import { embedded, embeddedView, type OpenFailure } from "../../runtime/embedded/index.ts"
import { alone, type Blobs, clustered, type Limits, makeMemoryView, type NodeNameTaken,
  type OpenView, type Placement, type Records, type Storage, type StoreContents,
  type Transport } from "../../runtime/index.ts"
import { assertSubjectPermission, assertWhole, type BucketsDiffer, connection, natsBlobs,
  natsContents, type NatsOptions, natsRecordsWith, natsRegistry, natsStorage, type NatsTooOld,
  natsTransport } from "../../runtime/nats/index.ts"
import { isNodeName, type NodeSettings } from "../settings/index.ts"

/** What a node of a cluster is called, in the data directory. */
const nameFile = "node-id"

/** Name of a node that is alone. */
const soleNode = "sole"

/** A node of a cluster has no name: `file`, which is to keep it, cannot be used. */
export class NodeUnnamed extends Schema.TaggedError<NodeUnnamed>()("NodeUnnamed", {
  file: Schema.String,
  detail: Schema.String
}) {}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined

/** Makes a name up, unless there is one by now. */
const makeName = (dataDir: string, file: string): void => {
  mkdirSync(dataDir, { recursive: true })
  try {
    writeFileSync(file, `${randomId()}\n`, { flag: "wx", flush: true })
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  }
}

const keptName = (dataDir: string): Effect.Effect<string, NodeUnnamed> => {
  const file = join(dataDir, nameFile)
  const read = (): string => {
    makeName(dataDir, file)
    const name = readFileSync(file, "utf8").trim()
    if (!isNodeName(name)) throw new Error("it holds no name of a node")
    return name
  }
  return Effect.try({
    try: read,
    catch: (error) =>
      new NodeUnnamed({ file, detail: error instanceof Error ? error.message : String(error) })
  })
}

/** Whether the node is one of a cluster. */
export const isClustered = ({ natsUrl }: NodeSettings): boolean => natsUrl !== undefined

/** The node's name: the same at each start, as what it left under way is known by it. */
export const nodeNameOf = (settings: NodeSettings): Effect.Effect<string, NodeUnnamed> => {
  if (!isClustered(settings)) return Effect.succeed(soleNode)
  return settings.nodeId === undefined
    ? keptName(settings.dataDir)
    : Effect.succeed(settings.nodeId)
}

/**
 * Embedded, groups are so large that commits share a flush well, and so small that one group is
 * answered while the next is flushed, when as many clients wait as do on a busy node. On NATS a
 * group is answered when the slowest of its commits is: so many are under way, and the storage
 * gathers what goes to the servers together.
 */
export const groupLimits = (settings: NodeSettings): Partial<Limits> =>
  isClustered(settings)
    ? { groupCommitsMax: 500, groupsInFlightMax: 16 }
    : { groupCommitsMax: 64 }

/** The fields that are set. */
const present = <Fields extends object>(fields: Fields) =>
  // What is undefined is left out, which `Object.fromEntries` cannot say.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof Fields]?: Exclude<Fields[K], undefined>
  }

const shown = (secret: Redacted.Redacted | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

/** How to reach NATS; `node` names the connection to who watches the servers. */
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
      pass: shown(settings.natsPassword),
      token: shown(settings.natsToken),
      nkeySeed: shown(settings.natsNkeySeed),
      credsFile: settings.natsCreds,
      tls: Object.keys(tls).length === 0 ? undefined : tls,
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

/** The node's view of the records: in its data directory, or in memory where that cannot be had. */
const viewOf = ({ dataDir, storageEngine }: NodeSettings, node: string): OpenView => {
  const folder = join(dataDir, "view", node)
  return embeddedView(folder, storageEngine).pipe(Effect.catch((failure) => {
    const detail = "detail" in failure ? failure.detail : "another process has it"
    const text = `${folder} cannot be used (${detail}): the view of the records is in memory`
    return Effect.as(Effect.logWarning(text), makeMemoryView())
  }))
}

const overNats = (settings: NodeSettings, servers: ReadonlyArray<string>, node: string) =>
  Layer.mergeAll(
    natsStorage({ buckets: settings.clusterBuckets }),
    natsRecordsWith(viewOf(settings, node)),
    natsBlobs(),
    natsContents({ buckets: settings.clusterBuckets }),
    Layer.provideMerge(natsTransport, Layer.effectDiscard(assertSubjectPermission)),
    // The registry is provided too: with it the nodes agree on the service's key. A cluster that
    // is being restored is looked for once this node is a member: who restores looks for members.
    Layer.effectDiscard(assertWhole).pipe(
      Layer.provideMerge(clustered({ node })),
      Layer.provideMerge(natsRegistry)
    )
  ).pipe(Layer.provide(connection(natsOptions(settings, servers, node))))

/** Every port of the runtime, as the settings say; `node` is the node's name. */
export const backend = (
  settings: NodeSettings,
  node: string
): Layer.Layer<Ports, BackendFailure> =>
  settings.natsUrl === undefined
    ? Layer.merge(embedded(settings.dataDir, { engine: settings.storageEngine }), alone)
    : overNats(settings, settings.natsUrl, node)
