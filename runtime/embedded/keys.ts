/** The keys of the embedded store, all of them text; the README of this folder lists them. */
import { type Address, keyOf, shardOf } from "../actor/index.ts"

/** Numbers are padded to so many digits, so that keys sort as their numbers do. */
const DIGITS = 16

export const digits = (n: number): string => String(n).padStart(DIGITS, "0")

/** The number at the end of a key. */
export const lastNumber = (key: string): number => Number(key.slice(-DIGITS))

export const FORMAT_KEY = "meta/format"

export const COMMITS_KEY = "meta/commits"

/** The key of the note that a view stores with its records: how much of a stream it contains. */
export const VIEW_KEY = "meta/view"

/** The key of a state record. */
export const actorKey = (key: string): string => `actor/${key}`

/** The key of the epoch of a log whose actor has no state record. */
export const bareKey = (key: string): string => `bare/${key}`

/** The prefix of the keys of one log; an epoch belongs to one life of one actor. */
export const logPrefix = (epoch: number): string => `log/${digits(epoch)}/`

/** After all keys of the log with this prefix, which continue in digits only. */
export const logEnd = (prefix: string): string => `${prefix}:`

export const garbageKey = (epoch: number): string => `garbage/${digits(epoch)}`

const shardDigits = (shard: number): string => String(shard).padStart(3, "0")

/** The key of an actor's own timer; its value is the time. */
export const timerKey = (key: string): string => `timer/${key}`

/** The own timers of a shard, in order of time. */
export const duePrefix = (shard: number): string => `due/${shardDigits(shard)}/`

/** The key of the same timer in order of time; no value. */
export const dueKey = (of: Address, atMs: number): string =>
  `${duePrefix(shardOf(of))}${digits(atMs)}/${keyOf(of)}`

/** The time and the actor of a key without its {@link duePrefix}. */
export const parseDue = (text: string): { atMs: number; key: string } => ({
  atMs: Number(text.slice(0, DIGITS)),
  key: text.slice(DIGITS + 1)
})

export const signalPrefix = (shard: number): string => `signal/${shardDigits(shard)}/`

/** The key of the signal to an actor; its value has the time and revision. */
export const signalKey = (address: Address): string =>
  `${signalPrefix(shardOf(address))}${keyOf(address)}`

/** Parses `<ms since the epoch> <revision>`, of a signal. */
export const parseSignal = (text: string): { atMs: number; revision: number } => {
  const [atMs, revision] = text.split(" ")
  return { atMs: Number(atMs), revision: Number(revision) }
}

export const recordKey = (table: string, key: string): string => `record/${table}/${key}`

/** The key of the length, digest and file name of a blob. */
export const blobKey = (id: string): string => `blob/${id}`

/** The key of the bytes of a small blob. */
export const bytesKey = (id: string): string => `bytes/${id}`

/** The key of a blob whose owner was not confirmed; its value is the run that wrote it. */
export const preparedKey = (id: string): string => `prepared/${id}`

/** No UTF-8 text contains this byte. */
const AFTER_ALL = Buffer.from([0xff])

/** The end of the span of all keys that begin with `prefix`. */
export const endOf = (prefix: string): Buffer => Buffer.concat([Buffer.from(prefix), AFTER_ALL])
