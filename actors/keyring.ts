/**
 * The keys that encrypt what is stored and needed again in plain text, see `key-stream.ts`: for
 * each purpose HKDF (RFC 5869) derives keys. A sealed text is bound to its place: it opens for the
 * same purpose and the same record only. What is only compared is stored as a hash instead, see
 * `secret-hash.ts`.
 */
import { hkdfSync, randomBytes } from "node:crypto"
import { LRUCache } from "lru-cache"
import { type Address, keyOf } from "../runtime/index.ts"
import { KeyStream } from "./key-stream.ts"
import { openedCharsMax, openedTextsMax, secretKeyBytes, secretKeysMax } from "./limits.ts"

/** What a derived key is for: no two purposes have the same key. */
export type KeyPurpose =
  | "service key"
  | "message password"
  | "signing secret"
  | "envelopes between nodes"

/** Where a sealed text is stored. */
export interface SealedPlace {
  readonly purpose: KeyPurpose
  /** The record or actor that has it. */
  readonly of: string
}

/** The place of message passwords of an actor: a mailbox, or an outgoing notification. */
export const messagePasswordOf = (owner: Address): SealedPlace => ({
  purpose: "message password",
  of: keyOf(owner)
})

/** The place of the signing secrets of a registration, or of the webhooks of a mailbox. */
export const signingSecretOf = (owner: Address): SealedPlace => ({
  purpose: "signing secret",
  of: keyOf(owner)
})

/** Version of the form of sealed texts: `s2.<key id>.<encrypted text, base64url>`. */
const version = "s2"

const sealedPattern = /^s2\.([A-Za-z0-9_-]{8})\.([A-Za-z0-9_-]+)$/

const idBytes = 6

const derive = (key: Uint8Array, info: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", key, "", `restante/1 ${info}`, bytes))

/** The id of the key that sealed a text; undefined for a text that is not sealed. */
export const sealingKeyId = (sealed: string): string | undefined => sealedPattern.exec(sealed)?.[1]

const textOf = ({ of, purpose }: SealedPlace): string => `${purpose}\n${of}`

const samePlace = (one: SealedPlace, other: SealedPlace): boolean =>
  one === other || (one.of === other.of && one.purpose === other.purpose)

/** One key, and what was derived from it. */
class SecretKey {
  readonly id: string
  private readonly bytes: Uint8Array
  private readonly derived = new Map<string, Buffer>()
  private readonly streams = new Map<KeyPurpose, KeyStream>()

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.id = derive(bytes, "key id", idBytes).toString("base64url")
  }

  keyFor(purpose: string): Buffer {
    const known = this.derived.get(purpose)
    if (known !== undefined) return known
    const key = derive(this.bytes, `key: ${purpose}`, secretKeyBytes)
    this.derived.set(purpose, key)
    return key
  }

  streamFor(purpose: KeyPurpose): KeyStream {
    const known = this.streams.get(purpose)
    if (known !== undefined) return known
    const stream = new KeyStream(this.keyFor(`${purpose}, cipher`), this.keyFor(`${purpose}, code`))
    this.streams.set(purpose, stream)
    return stream
  }
}

/** A text that was opened, and the place for which it was. */
interface Opened {
  readonly place: SealedPlace
  readonly text: string
}

/** A copy of a part of a text, which does not keep the whole in memory. */
const copied = (part: string): string => Buffer.from(part, "latin1").toString("latin1")

/** One key at least: the first encrypts, the others only decrypt. */
export class Keyring {
  private readonly current: SecretKey
  private readonly all: ReadonlyMap<string, SecretKey>
  /** The latest texts that were opened, by their sealed form: a listing has the same ones again. */
  private readonly opened = new LRUCache<string, Opened>({ max: openedTextsMax })

  /** Throws a RangeError for no key, too many keys, or a key of another length. */
  constructor(keys: ReadonlyArray<Uint8Array>) {
    const all = keys.map((bytes) => {
      if (bytes.length === secretKeyBytes) return new SecretKey(bytes)
      throw new RangeError(`a secret key has ${bytes.length} bytes instead of ${secretKeyBytes}`)
    })
    const [current] = all
    if (current === undefined || all.length > secretKeysMax) {
      throw new RangeError(`there are ${all.length} secret keys instead of 1 to ${secretKeysMax}`)
    }
    this.current = current
    this.all = new Map(all.map((key) => [key.id, key]))
  }

  /** The id of the key that encrypts. An id reveals nothing of its key. */
  get currentId(): string {
    return this.current.id
  }

  /** The ids of all keys, that of the current one first. */
  get ids(): ReadonlyArray<string> {
    return [...this.all.keys()]
  }

  /** Keys of 32 bytes for this purpose: that of the current key first. */
  keysFor(purpose: KeyPurpose): ReadonlyArray<Buffer> {
    return [...this.all.values()].map((key) => key.keyFor(purpose))
  }

  /** Encrypts a text under the current key. */
  seal(place: SealedPlace, text: string): string {
    const encrypted = this.current.streamFor(place.purpose).encrypt(text, textOf(place))
    return `${version}.${this.current.id}.${encrypted}`
  }

  /**
   * The text that was sealed for this place; undefined if its key is missing, or if it was sealed
   * for another place or changed.
   */
  open(place: SealedPlace, sealed: string): string | undefined {
    // Without making it the latest one, which would take longer than the search itself.
    const known = this.opened.peek(sealed)
    if (known !== undefined && samePlace(known.place, place)) return known.text
    const [, id = "", encoded = ""] = sealedPattern.exec(sealed) ?? []
    const text = this.all.get(id)?.streamFor(place.purpose).decrypt(encoded, textOf(place))
    if (text !== undefined && sealed.length <= openedCharsMax) {
      this.opened.set(copied(sealed), { place, text })
    }
    return text
  }
}

/** The bytes of one key as a line of a key file: base64, base64url, or hexadecimal digits. */
const keyOfLine = (line: string): Uint8Array | undefined => {
  if (/^[0-9A-Fa-f]{64}$/.test(line)) return Buffer.from(line, "hex")
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(line)) return undefined
  const bytes = Buffer.from(line, "base64url")
  return bytes.length === secretKeyBytes ? bytes : undefined
}

/**
 * The keys of a key file: one a line, the current one first. Empty lines, and those that begin with
 * `#`, do not count. Returns what is wrong with the file as a text, without a part of a key.
 */
export const parseKeys = (text: string): Keyring | string => {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const written = lines.filter((line) => line !== "" && !line.startsWith("#"))
  if (written.length === 0) return "it has no key"
  if (written.length > secretKeysMax) return `it has more than ${secretKeysMax} keys`
  const keys = written.map(keyOfLine)
  const wrong = keys.indexOf(undefined)
  if (wrong >= 0) return `key number ${wrong + 1} does not have ${secretKeyBytes} bytes as base64`
  return new Keyring(keys.filter((key) => key !== undefined))
}

/** A new key, as a line of a key file. */
export const newKey = (): string => randomBytes(secretKeyBytes).toString("base64")
