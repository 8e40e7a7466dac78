/** The keys of the embedded store, all of them text; the README of this folder lists them. */
import { type Address, keyOf, shardOf } from "../actor/index.ts"

/** Numbers are padded to so many digits, so that keys sort as their numbers do. */
const DIGITS = 16

export const digits = (n: number): string => String(n).padStart(DIGITS, "0")

/** The number at the end of a key. */
export const lastNumber = (key: string): number => Number(key.slice(-DIGITS))

export const FORMAT_KEY = "meta/format"

export const COMMITS_KEY = "meta/commits"

/** Of the position that the feeder of a view stores with its records. */
export const VIEW_KEY = "meta/view"

/** Of the state record. */
export const actorKey = (key: string): string => `actor/${key}`

/** Of the epoch of a log whose actor has no state record. */
export const bareKey = (key: string): string => `bare/${key}`

/** The prefix of the keys of one log; an epoch belongs to one life of one actor. */
export const logPrefix = (epoch: number): string => `log/${digits(epoch)}/`

/** After all keys of the log with this prefix, which continue in digits only. */
export const logEnd = (prefix: string): string => `${prefix}:`

export const garbageKey = (epoch: number): string => `garbage/${digits(epoch)}`

export const timerPrefix = (shard: number): string => `timer/${String(shard).padStart(3, "0")}/`

/** Of an actor's own timer: its time. */
export const timerKey = (address: Address): string =>
  `${timerPrefix(shardOf(address))}${keyOf(address)}`

export const signalPrefix = (shard: number): string => `signal/${String(shard).padStart(3, "0")}/`

/** Of the signal to an actor: its time and revision. */
export const signalKey = (address: Address): string =>
  `${signalPrefix(shardOf(address))}${keyOf(address)}`

/** `<ms since the epoch> <revision>`, or the time alone for an actor's own timer. */
export const parseTimer = (text: string): { atMs: number; signalRevision: number | undefined } => {
  const [atMs, signalRevision] = text.split(" ")
  return {
    atMs: Number(atMs),
    signalRevision: signalRevision === undefined ? undefined : Number(signalRevision)
  }
}

export const recordKey = (table: string, key: string): string => `record/${table}/${key}`

/** Of the length, digest and file name of a blob. */
export const blobKey = (id: string): string => `blob/${id}`

/** Of the bytes of a small blob. */
export const bytesKey = (id: string): string => `bytes/${id}`

/** No UTF-8 text contains this byte. */
const AFTER_ALL = Buffer.from([0xff])

/** The end of the span of all keys that begin with `prefix`. */
export const endOf = (prefix: string): Buffer => Buffer.concat([Buffer.from(prefix), AFTER_ALL])
