/**
 * Names of the store's streams and keys. The bucket of an actor is its shard modulo the number of
 * buckets; within it are `<shard>.<kind>.<id>.state`, `<shard>.<kind>.<id>.log.<n>`,
 * `timer.<shard>.<place>.<kind>.<id>` and `signal.<shard>.<kind>.<id>`. A key's subject is
 * `$KV.<bucket>.<key>`.
 *
 * The place of a timer in order of time is its ms times 100 plus a number below 100 that the
 * actor's key determines, so that many timers of one ms have many places. Each of its 15 digits is
 * a token, because servers list what matches a wildcard, and wildcards match tokens.
 */
import { type Address, keyOf, shardOf } from "../../actor/index.ts"

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
    signal: `${prefix}signal.${actor}`
  }
}

const placeDigits = 15

const placesPerMs = 100

/** After the places of all timers. */
export const placeEnd = 10 ** placeDigits

/** The first place of a time. */
export const placeOf = (atMs: number): number => atMs * placesPerMs

/** The time of a place, and of a place that begins a block of places. */
export const timeOfPlace = (place: number): number => Math.floor(place / placesPerMs)

const tokensOf = (
  place: number
): ReadonlyArray<string> => [...String(place).padStart(placeDigits, "0")]

/** FNV-1a of the actor's key. */
const spreadOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) {
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  }
  return (hash >>> 0) % placesPerMs
}

/** The actors' own timers of a shard begin so. */
export const timersPrefix = ({ prefix }: Bucket, shard: number): string =>
  `${prefix}timer.${shard}.`

/** The key of an actor's own timer at this time. */
export const timerKey = (bucket: Bucket, of: Address, atMs: number): string => {
  const place = placeOf(atMs) + spreadOf(keyOf(of))
  return `${timersPrefix(bucket, shardOf(of))}${tokensOf(place).join(".")}.${of.kind}.${of.id}`
}

/** The timers of a shard at `places` (a power of ten) places from `place`, a multiple of it, on. */
export const timersFilter = (
  bucket: Bucket,
  shard: number,
  place: number,
  places: number
): string => {
  const tokens = tokensOf(place).slice(0, placeDigits - Math.round(Math.log10(places)))
  return timersPrefix(bucket, shard) + [...tokens, ">"].join(".")
}

/** Before the keys of all timers at this time or later, and after all others. */
export const firstKeyOf = (atMs: number): string => tokensOf(placeOf(atMs)).join(".")

/** The place, time and actor of a timer's key, without its {@link timersPrefix}. */
export const parseTimerKey = (
  key: string
): { readonly place: number; readonly atMs: number; readonly address: Address } => {
  const end = 2 * placeDigits
  const place = Number(key.slice(0, end).replaceAll(".", ""))
  const [kind = "", id = ""] = key.slice(end).split(".")
  return { place, atMs: timeOfPlace(place), address: { kind, id } }
}

/** The signals of a shard. */
export const signalsOf = ({ prefix }: Bucket, shard: number): string => `${prefix}signal.${shard}.>`

/** The signals to actors of a kind. */
export const signalsOfKind = ({ prefix }: Bucket, kind: string): string =>
  `${prefix}signal.*.${kind}.>`

/** The actor of a signal's subject. */
export const addressOfSignal = ({ prefix }: Bucket, subject: string): Address => {
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
