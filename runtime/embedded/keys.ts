/** How the embedded store spells its keys: see this folder's README. All of them are text. */
import { type Address, keyOf, shardOf } from "../actor/index.ts"

/** Digits of a number in a key, so that keys sort as their numbers do. */
const DIGITS = 16

export const digits = (n: number): string => String(n).padStart(DIGITS, "0")

/** The number that a key ends in. */
export const lastNumber = (key: string): number => Number(key.slice(-DIGITS))

export const FORMAT_KEY = "meta/format"

export const COMMITS_KEY = "meta/commits"

/** Of what a view of a cluster's records notes of itself. */
export const VIEW_KEY = "meta/view"

/** Of the state record. */
export const actorKey = (key: string): string => `actor/${key}`

/** Of the epoch of a log whose actor has no state record. */
export const bareKey = (key: string): string => `bare/${key}`

/** What the keys of one log begin with; an epoch belongs to one life of one actor. */
export const logPrefix = (epoch: number): string => `log/${digits(epoch)}/`

/** After all keys of the log with this prefix: they go on in digits alone. */
export const logEnd = (prefix: string): string => `${prefix}:`

export const garbageKey = (epoch: number): string => `garbage/${digits(epoch)}`

export const timerPrefix = (shard: number): string => `timer/${String(shard).padStart(3, "0")}/`

export const timerKey = (address: Address): string =>
  `${timerPrefix(shardOf(address))}${keyOf(address)}`

export const recordKey = (table: string, key: string): string => `record/${table}/${key}`

/** Of what is known of a blob. */
export const blobKey = (id: string): string => `blob/${id}`

/** Of the bytes of a small blob. */
export const bytesKey = (id: string): string => `bytes/${id}`

/** The byte that no UTF-8 text holds: after every key with this prefix, before all others. */
const AFTER_ALL = Buffer.from([0xff])

/** First key after all those that begin with `prefix`. */
export const endOf = (prefix: string): Buffer => Buffer.concat([Buffer.from(prefix), AFTER_ALL])
