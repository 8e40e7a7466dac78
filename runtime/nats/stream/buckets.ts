/** The streams of the store: made when they are not there, checked when they are. */
import { Effect, Schema } from "effect"
import { SHARDS, type StorageUnavailable } from "../../actor/index.ts"
import { bucketsDefault, bucketsMax, createStreamResendMs, createStreamTimeoutMs,
  retryDelayMs } from "../../limits.ts"
import { asStorageUnavailable, type NatsApi, wait } from "../connection/index.ts"
import { type Bucket, bucketName, bucketNamed } from "./keys.ts"
import { callApi } from "./reader.ts"

/** The cluster was made with another number of buckets, or another number of shards. */
export class BucketsDiffer extends Schema.TaggedError<BucketsDiffer>()("BucketsDiffer", {
  found: Schema.String,
  wanted: Schema.String
}) {}

/** What the servers say of a stream's configuration. */
type Configured = Readonly<Record<string, unknown>>

interface Described {
  readonly config: Configured & { readonly metadata?: Readonly<Record<string, string>> }
}

const BUCKETS_NOTE = "restante_buckets"

const SHARDS_NOTE = "restante_shards"

/** A KV bucket's stream, as `nats kv` knows them, with atomic batches and marks that fade. */
const streamConfig = (bucket: string, replicas: number, metadata: Record<string, string>) => ({
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
  metadata
})

/** What a stream that is there already has to have; the rest is its operator's to choose. */
const NEEDED = {
  retention: "limits",
  storage: "file",
  discard: "new",
  max_age: 0,
  max_msgs_per_subject: 1,
  allow_direct: true,
  allow_atomic: true,
  allow_msg_ttl: true
} as const

/** Throws, saying why, where a stream would lose or refuse what is written to it. */
export const assertStreamConfig = (
  stream: string,
  config: Configured,
  needed: Configured = NEEDED
): void => {
  for (const [name, value] of Object.entries(needed)) {
    const found = config[name] ?? false
    if (found === value) continue
    throw new Error(`the stream ${stream} has ${name} ${found}, and it has to be ${value}`)
  }
}

const NO_STREAM = 10_059

const IN_USE = 10_058

const codeOf = (error: unknown): number | undefined =>
  // An ApiError of the reader carries the server's code.
  error instanceof Error && "code" in error ? Number(error.code) : undefined

/** Asks until the servers answer; a cluster that has just begun elects its leaders first. */
const patiently = async <A>(attempt: () => Promise<A>): Promise<A> => {
  const untilMs = performance.now() + createStreamTimeoutMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const code = codeOf(error)
      if (code === NO_STREAM || code === IN_USE) throw error
      if (performance.now() > untilMs) throw asStorageUnavailable(error)
      await wait(retryDelayMs)
    }
  }
}

const describeStream = async (nats: NatsApi, stream: string): Promise<Described | undefined> => {
  try {
    return await patiently(() =>
      callApi<Described>(nats, `STREAM.INFO.${stream}`, {}, createStreamResendMs)
    )
  } catch (error) {
    if (codeOf(error) === NO_STREAM) return undefined
    throw error
  }
}

/** Makes the stream, unless another node was faster. */
export const ensureBucket = async (
  nats: NatsApi,
  bucket: string,
  metadata: Record<string, string> = {}
): Promise<Bucket> => {
  const place = bucketNamed(bucket)
  const found = await describeStream(nats, place.stream)
  if (found !== undefined) {
    assertStreamConfig(place.stream, found.config)
    return place
  }
  const config = streamConfig(bucket, nats.replicas, metadata)
  try {
    const question = `STREAM.CREATE.${place.stream}`
    await patiently(() => callApi(nats, question, config, createStreamResendMs))
  } catch (error) {
    if (codeOf(error) !== IN_USE) throw error
  }
  return place
}

/** The places of all actors; `wanted` undefined takes what is there, or the default. */
export const ensureActorBuckets = async (
  nats: NatsApi,
  wanted: number | undefined
): Promise<ReadonlyArray<Bucket> | BucketsDiffer> => {
  const found = await describeStream(nats, bucketNamed(bucketName(0, 1)).stream) ??
    await describeStream(nats, bucketNamed(bucketName(0, 2)).stream)
  const noted = found?.config.metadata?.[BUCKETS_NOTE]
  const shards = found?.config.metadata?.[SHARDS_NOTE]
  const buckets = wanted ?? Number(noted ?? bucketsDefault)
  if (!Number.isInteger(buckets) || buckets < 1 || buckets > bucketsMax) {
    throw new RangeError(`${buckets} buckets: 1 to ${bucketsMax} are possible`)
  }
  if (found !== undefined && (noted !== String(buckets) || shards !== String(SHARDS))) {
    return new BucketsDiffer({
      found: `${noted ?? "?"} buckets, ${shards ?? "?"} shards`,
      wanted: `${buckets} buckets, ${SHARDS} shards`
    })
  }
  const metadata = { [BUCKETS_NOTE]: String(buckets), [SHARDS_NOTE]: String(SHARDS) }
  const names = Array.from({ length: buckets }, (_, at) => bucketName(at, buckets))
  return Promise.all(names.map((name) => ensureBucket(nats, name, metadata)))
}

/** The same as an effect, as the layers upon them make them. */
export const bucketsOf = (
  nats: NatsApi,
  wanted: number | undefined
): Effect.Effect<ReadonlyArray<Bucket>, StorageUnavailable | BucketsDiffer> =>
  Effect.flatMap(
    Effect.tryPromise({ try: () => ensureActorBuckets(nats, wanted), catch: asStorageUnavailable }),
    (places): Effect.Effect<ReadonlyArray<Bucket>, BucketsDiffer> =>
      "_tag" in places ? Effect.fail(places) : Effect.succeed(places)
  )
