/**
 * Web Push: what identifies this service to the push service of a browser (VAPID, RFC 8292), and
 * the content that only the browser decrypts (RFC 8291).
 */
import { createECDH, createHmac, createPrivateKey, type ECDH, hkdfSync, type KeyObject,
  sign } from "node:crypto"
import { createRequire } from "node:module"
import { vapidLifetimeMs, webPushRecordBytes, webPushTtlSeconds } from "../limits.ts"
import type { OutboundContent } from "../outbound/index.ts"
import { parseUrl } from "../parse-url.ts"

interface EncryptionParameters {
  readonly version: "aes128gcm"
  /** Of the receiver, base64url. */
  readonly dh: string
  readonly authSecret: string
  /** Of the sender, for this content only. */
  readonly privateKey: ECDH
  /** 16 bytes, base64url; random by default. */
  readonly salt?: string
  readonly rs: number
}

const require = createRequire(import.meta.url)

// The package has no types.
const { encrypt } = require("http_ece") as {
  encrypt: (content: Buffer, parameters: EncryptionParameters) => Buffer
}

const curve = "prime256v1"

/** The keys of a push subscription (Push API §8.1), base64url. */
export interface SubscriptionKeys {
  /** The public key of the browser: an uncompressed point of P-256. */
  readonly p256dh: string
  /** The secret that the browser has shared with the service. */
  readonly auth: string
}

/** What a content is encrypted with, beside the keys of its receiver. */
interface Encryption {
  readonly privateKey: ECDH
  readonly salt?: string
}

const newEncryption = (): Encryption => {
  const privateKey = createECDH(curve)
  privateKey.generateKeys()
  return { privateKey }
}

/** Encrypts a content for one browser, in one record (RFC 8291 §4). */
export const encryptPush = (
  content: string,
  { auth, p256dh }: SubscriptionKeys,
  encryption: Encryption = newEncryption()
): Buffer =>
  encrypt(Buffer.from(content), {
    version: "aes128gcm",
    dh: p256dh,
    authSecret: auth,
    rs: webPushRecordBytes,
    ...encryption
  })

/** The order of the group of P-256 (SP 800-186 §3.2.1.3). */
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** Bytes of which a private key is made: the excess makes all keys equally likely. */
const seedBytes = 48

/** A key pair from the service's key (FIPS 186-5 A.2.1): all nodes and restores have the same. */
const pairOf = (serviceKey: string): { readonly key: KeyObject; readonly publicKey: string } => {
  const seed = Buffer.from(hkdfSync("sha256", serviceKey, "", "restante/1 vapid key", seedBytes))
  const scalar = BigInt(`0x${seed.toString("hex")}`) % (order - 1n) + 1n
  const d = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex")
  const ecdh = createECDH(curve)
  ecdh.setPrivateKey(d)
  const point = ecdh.getPublicKey()
  const key = createPrivateKey({
    format: "jwk",
    key: {
      kty: "EC",
      crv: "P-256",
      x: point.toString("base64url", 1, 33),
      y: point.toString("base64url", 33),
      d: d.toString("base64url")
    }
  })
  return { key, publicKey: point.toString("base64url") }
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/** The key pair that identifies this service to push services, once its node has the key. */
export class Vapid {
  /** A `mailto:` or `https:` URI for the operators of push services. */
  private readonly subject: string | undefined
  private pair: ReturnType<typeof pairOf> | undefined

  /** The first contact that fits is used. Nothing is pushed before {@link useServiceKey}. */
  constructor(contacts: ReadonlyArray<string | undefined>) {
    // RFC 8292 §2.1 knows no other schemes; without a contact the claim is left out.
    this.subject = contacts.find((uri) => uri !== undefined && /^(?:mailto|https):/i.test(uri))
  }

  /** Derives the key pair. Returns the public key, base64url: browsers subscribe with it. */
  useServiceKey(serviceKey: string): string {
    this.pair = pairOf(serviceKey)
    return this.pair.publicKey
  }

  /** The Authorization of a push to this endpoint; undefined before the node has the key. */
  authorizationFor(endpoint: string, nowMs: number): string | undefined {
    if (this.pair === undefined) return undefined
    const { key, publicKey } = this.pair
    const claims = {
      aud: parseUrl(endpoint)?.origin,
      exp: Math.floor((nowMs + vapidLifetimeMs) / 1000),
      sub: this.subject
    }
    const signed = `${encoded({ typ: "JWT", alg: "ES256" })}.${encoded(claims)}`
    const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" })
    return `vapid t=${signed}.${signature.toString("base64url")}, k=${publicKey}`
  }
}

const topicBytes = 24

/**
 * The request for one browser (RFC 8030 §5, RFC 8291 §2); undefined before the node has the key.
 * A push service that has not delivered yet replaces the content by a later one of its topic. The
 * topic is keyed, so that it does not reveal the mailbox.
 */
export const browserRequest = (
  vapid: Vapid,
  content: string,
  registration: string,
  endpoint: string,
  keys: SubscriptionKeys,
  nowMs: number
): OutboundContent | undefined => {
  const authorization = vapid.authorizationFor(endpoint, nowMs)
  if (authorization === undefined) return undefined
  const topic = createHmac("sha256", keys.auth).update(registration).digest()
  return {
    headers: {
      "Content-Type": "application/octet-stream",
      "Content-Encoding": "aes128gcm",
      TTL: String(webPushTtlSeconds),
      Urgency: "normal",
      Topic: topic.toString("base64url", 0, topicBytes)
    },
    authorization,
    body: encryptPush(content, keys)
  }
}
