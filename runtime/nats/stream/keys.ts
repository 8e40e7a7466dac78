/**
 * Names of the store's streams and keys. The bucket of an actor is its shard modulo the number of
 * buckets; within it are `<shard>.<kind>.<id>.state`, `<shard>.<kind>.<id>.log.<n>`,
 * `timer.<shard>.<kind>.<id>` and `signal.<shard>.<kind>.<id>`. A key's subject is
 * `$KV.<bucket>.<key>`.
 */
import { type Address, shardOf } from "../../actor/index.ts"

/** One bucket: its stream, and how the subjects of its keys begin. */
export interface Bucket {
  readonly stream: string
  readonly prefix: string
}

/** `actors` when it is the only one, else `actors-0` and so on. */
export const bucketName = (at: number, buckets: number): string =>
  buckets === 1 ? "actors" : `actors-${at}`

export const bucketNamed = (bucket: string): Bucket => ({
  stream: `KV_${bucket}`,
  prefix: `$KV.${bucket}.`
})

/** The subjects of one actor's keys. */
export interface ActorKeys {
  readonly state: string
  /** Begins the subject of each log item. */
  readonly log: string
  /** A message that only carries an expectation. */
  readonly fence: string
  /** State, log and fence. */
  readonly all: string
  /** The actor's own timer. */
  readonly timer: string
  /** The signal of other actors to it. */
  readonly signal: string
}

export const actorKeys = ({ prefix }: Bucket, of: Address): ActorKeys => {
  const actor = `${shardOf(of)}.${of.kind}.${of.id}`
  return {
    state: `${prefix}${actor}.state`,
    log: `${prefix}${actor}.log.`,
    fence: `${prefix}${actor}.fence`,
    all: `${prefix}${actor}.>`,
    timer: `${prefix}timer.${actor}`,
    signal: `${prefix}signal.${actor}`
  }
}

/** The actors' own timers of a shard. */
export const timersOf = ({ prefix }: Bucket, shard: number): string => `${prefix}timer.${shard}.>`

/** The signals of a shard. */
export const signalsOf = ({ prefix }: Bucket, shard: number): string => `${prefix}signal.${shard}.>`

/** The actor of a timer's or a signal's subject. */
export const addressOfTimer = ({ prefix }: Bucket, subject: string): Address => {
  const [, , kind = "", id = ""] = subject.slice(prefix.length).split(".")
  return { kind, id }
}

/** The state records of a shard. */
export const statesOfShard = ({ prefix }: Bucket, shard: number): string =>
  `${prefix}${shard}.*.*.state`

/** The state records of a kind, and the id in such a record's subject. */
export const statesOfKind = ({ prefix }: Bucket, kind: string): string =>
  `${prefix}*.${kind}.*.state`

export const addressOfState = ({ prefix }: Bucket, subject: string): Address => {
  const [, kind = "", id = ""] = subject.slice(prefix.length).split(".")
  return { kind, id }
}

export const idOfState = ({ prefix }: Bucket, subject: string): string =>
  subject.slice(prefix.length).split(".")[2] ?? ""
