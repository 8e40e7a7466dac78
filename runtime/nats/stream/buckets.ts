/** The streams of the store: made when they do not exist, checked when they do. */
import { Effect, Schema } from "effect"
import { SHARDS, type StorageUnavailable, StoreFormatUnsupported } from "../../actor/index.ts"
import { bucketsDefault, bucketsMax, createStreamResendMs,
  createStreamTimeoutMs } from "../../limits.ts"
import { ApiError, asStorageUnavailable, errorCodes, type NatsApi,
  retryUntilDeadline } from "../connection/index.ts"
import { type Bucket, bucketName, bucketNamed } from "./keys.ts"
import { callApi } from "./reader.ts"

/** The cluster was made with another number of buckets, or another number of shards. */
export class BucketsDiffer extends Schema.TaggedError<BucketsDiffer>()("BucketsDiffer", {
  found: Schema.String,
  wanted: Schema.String
}) {}

type StreamConfig = Readonly<Record<string, unknown>>

interface StreamDescription {
  readonly config: StreamConfig & { readonly metadata?: Readonly<Record<string, string>> }
}

/** Version of the keys, headers and values in the buckets. */
const storeFormat = "3"

/** Fields of the streams' metadata. */
const formatField = "restante_format"

const bucketsField = "restante_buckets"

const shardsField = "restante_shards"

/** A KV bucket's stream as `nats kv` makes it, with atomic batches and markers with a TTL. */
const newStreamConfig = (bucket: string, replicas: number, metadata: Record<string, string>) => ({
  name: `KV_${bucket}`,
  subjects: [`$KV.${bucket}.>`],
  description: "restante",
  retention: "limits",
  storage: "file",
  discard: "new",
  max_msgs_per_subject: 1,
  num_replicas: replicas,
  duplicate_window: 120_000_000_000,
  allow_rollup_hdrs: true,
  deny_delete: true,
  allow_direct: true,
  allow_atomic: true,
  allow_msg_ttl: true,
  metadata: { ...metadata, [formatField]: storeFormat }
})

/** What an existing stream must have; the operator chooses the rest. */
const requiredConfig = {
  retention: "limits",
  storage: "file",
  discard: "new",
  max_age: 0,
  max_msgs_per_subject: 1,
  allow_direct: true,
  allow_atomic: true,
  allow_msg_ttl: true
} as const

/** Throws where a stream would lose or refuse what is written to it. */
export const assertStreamConfig = (
  stream: string,
  config: StreamConfig,
  required: StreamConfig = requiredConfig
): void => {
  for (const [name, value] of Object.entries(required)) {
    const found = config[name] ?? false
    if (found === value) continue
    throw new Error(`the stream ${stream} has ${name} ${found}, but it must be ${value}`)
  }
}

/** Throws StoreFormatUnsupported where another version made the stream. */
const assertFormat = (stream: string, { config }: StreamDescription): void => {
  const found = config.metadata?.[formatField]
  if (found === storeFormat) return
  throw new StoreFormatUnsupported({
    found: `format ${found ?? "1 (none noted)"} in the stream ${stream}`,
    supported: `format ${storeFormat}`
  })
}

/** A cluster that has just begun elects its leaders first. */
const callUntilLeader = <A>(nats: NatsApi, call: string, data: object): Promise<A> =>
  retryUntilDeadline(
    () => callApi<A>(nats, call, data, createStreamResendMs),
    createStreamTimeoutMs
  )

const hasCode = (error: unknown, code: number): boolean =>
  error instanceof ApiError && error.code === code

/** undefined: the stream does not exist. */
const describeStream = async (
  nats: NatsApi,
  stream: string
): Promise<StreamDescription | undefined> => {
  try {
    return await callUntilLeader<StreamDescription>(nats, `STREAM.INFO.${stream}`, {})
  } catch (error) {
    if (hasCode(error, errorCodes.noStream)) return undefined
    throw error
  }
}

/** Makes the stream of a bucket where it does not exist, and checks it where it does. */
export const ensureBucket = async (
  nats: NatsApi,
  name: string,
  metadata: Record<string, string> = {}
): Promise<Bucket> => {
  const bucket = bucketNamed(name)
  const { stream } = bucket
  const found = await describeStream(nats, stream)
  if (found !== undefined) {
    assertStreamConfig(stream, found.config)
    assertFormat(stream, found)
    return bucket
  }
  try {
    const config = newStreamConfig(name, nats.replicas, metadata)
    await callUntilLeader(nats, `STREAM.CREATE.${stream}`, config)
  } catch (error) {
    // Another node was faster.
    if (!hasCode(error, errorCodes.nameInUse)) throw error
  }
  return bucket
}

/**
 * The buckets of all actors; `wanted` undefined takes as many as exist, or the default. Throws
 * BucketsDiffer, or StoreFormatUnsupported.
 */
export const ensureActorBuckets = async (
  nats: NatsApi,
  wanted: number | undefined
): Promise<ReadonlyArray<Bucket>> => {
  const found = await describeStream(nats, bucketNamed(bucketName(0, 1)).stream) ??
    await describeStream(nats, bucketNamed(bucketName(0, 2)).stream)
  if (found !== undefined) assertFormat("KV_actors", found)
  const { [bucketsField]: count, [shardsField]: shards } = found?.config.metadata ?? {}
  const buckets = wanted ?? Number(count ?? bucketsDefault)
  if (!Number.isInteger(buckets) || buckets < 1 || buckets > bucketsMax) {
    throw new RangeError(`${buckets} buckets: 1 to ${bucketsMax} are possible`)
  }
  if (found !== undefined && (count !== String(buckets) || shards !== String(SHARDS))) {
    throw new BucketsDiffer({
      found: `${count ?? "?"} buckets, ${shards ?? "?"} shards`,
      wanted: `${buckets} buckets, ${SHARDS} shards`
    })
  }
  const metadata = { [bucketsField]: String(buckets), [shardsField]: String(SHARDS) }
  const names = Array.from({ length: buckets }, (_, at) => bucketName(at, buckets))
  return Promise.all(names.map((name) => ensureBucket(nats, name, metadata)))
}

/** Why the streams of a store cannot be used at the start. */
export type BucketFailure = StorageUnavailable | BucketsDiffer | StoreFormatUnsupported

/** The error of {@link ensureBucket} or {@link ensureActorBuckets} as a typed failure. */
export const bucketFailure = (error: unknown): BucketFailure =>
  error instanceof BucketsDiffer || error instanceof StoreFormatUnsupported
    ? error
    : asStorageUnavailable(error)

/** {@link ensureActorBuckets} as an effect. */
export const actorBuckets = (
  nats: NatsApi,
  wanted: number | undefined
): Effect.Effect<ReadonlyArray<Bucket>, BucketFailure> =>
  Effect.tryPromise({ try: () => ensureActorBuckets(nats, wanted), catch: bucketFailure })

/** {@link ensureBucket} as an effect. */
export const openBucket = (nats: NatsApi, name: string): Effect.Effect<Bucket, BucketFailure> =>
  Effect.tryPromise({ try: () => ensureBucket(nats, name), catch: bucketFailure })
