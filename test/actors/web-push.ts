/**
 * A browser's part of Web Push, written from RFC 8291, RFC 8188 and RFC 8292 with Web Crypto and
 * `jose`: independent of what the service uses.
 */
import { importJWK, type JWTPayload, jwtVerify } from "jose"
import type { webcrypto } from "node:crypto"

const { subtle } = crypto

const curve = { name: "ECDH", namedCurve: "P-256" } as const

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(text, "base64url"))

const encodedOf = (bytes: ArrayBuffer | Uint8Array): string =>
  Buffer.from(new Uint8Array(bytes)).toString("base64url")

/** A subscription, as `PushSubscription.toJSON()` writes its keys, and what the browser keeps. */
export interface Browser {
  readonly p256dh: string
  readonly auth: string
  readonly privateKey: webcrypto.CryptoKey
}

export const newBrowser = async (): Promise<Browser> => {
  const { privateKey, publicKey } = await subtle.generateKey(curve, true, ["deriveBits"])
  return {
    p256dh: encodedOf(await subtle.exportKey("raw", publicKey)),
    auth: encodedOf(crypto.getRandomValues(new Uint8Array(16))),
    privateKey
  }
}

/** A browser with these keys, base64url. */
export const browserOf = async (
  keys: { readonly p256dh: string; readonly auth: string; readonly d: string }
): Promise<Browser> => {
  const point = bytesOf(keys.p256dh)
  const [x, y] = [encodedOf(point.slice(1, 33)), encodedOf(point.slice(33))]
  const jwk = { kty: "EC", crv: "P-256", x, y, d: keys.d }
  const privateKey = await subtle.importKey("jwk", jwk, curve, false, ["deriveBits"])
  return { p256dh: keys.p256dh, auth: keys.auth, privateKey }
}

const hkdf = async (
  salt: Uint8Array<ArrayBuffer>,
  secret: ArrayBuffer,
  info: Uint8Array<ArrayBuffer>,
  bytes: number
): Promise<ArrayBuffer> => {
  const key = await subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"])
  return subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, bytes * 8)
}

const infoOf = (...parts: ReadonlyArray<string | Uint8Array>): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(
    Buffer.concat(parts.map((part) => typeof part === "string" ? Buffer.from(part) : part))
  )

/** Decrypts the only record of a push (RFC 8291 §3.4, RFC 8188 §2). Throws for another key. */
export const decryptPush = async (browser: Browser, body: Uint8Array): Promise<string> => {
  const bytes = Uint8Array.from(body)
  const salt = bytes.slice(0, 16)
  const recordBytes = new DataView(bytes.buffer).getUint32(16)
  const idBytes = bytes[20] ?? 0
  const sender = bytes.slice(21, 21 + idBytes)
  const record = bytes.slice(21 + idBytes)
  if (record.length > recordBytes) throw new Error("a push has one record")
  const senderKey = await subtle.importKey("raw", sender, curve, false, [])
  const shared = await subtle.deriveBits(
    { name: "ECDH", public: senderKey },
    browser.privateKey,
    256
  )
  const keyInfo = infoOf("WebPush: info\0", bytesOf(browser.p256dh), sender)
  const secret = await hkdf(bytesOf(browser.auth), shared, keyInfo, 32)
  const rawKey = await hkdf(salt, secret, infoOf("Content-Encoding: aes128gcm\0"), 16)
  const iv = await hkdf(salt, secret, infoOf("Content-Encoding: nonce\0"), 12)
  const key = await subtle.importKey("raw", rawKey, "AES-GCM", false, ["decrypt"])
  const padded = new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, key, record))
  // The delimiter of the last record is 2; zeros may follow.
  const end = padded.findLastIndex((byte) => byte !== 0)
  if (padded[end] !== 2) throw new Error("the delimiter of the last record is 2")
  return new TextDecoder("utf-8", { fatal: true }).decode(padded.slice(0, end))
}

/** The claims of an Authorization of VAPID for this key. Throws for a wrong signature. */
export const verifyVapid = async (
  authorization: string | undefined,
  applicationServerKey: string,
  audience: string,
  nowMs: number
): Promise<JWTPayload> => {
  const [, token = "", key] = /^vapid t=([^,\s]+), k=([^,\s]+)$/.exec(authorization ?? "") ?? []
  if (key !== applicationServerKey) throw new Error(`the key is ${key}`)
  const point = bytesOf(key)
  const [x, y] = [encodedOf(point.slice(1, 33)), encodedOf(point.slice(33))]
  const publicKey = await importJWK({ kty: "EC", crv: "P-256", x, y }, "ES256")
  const { payload } = await jwtVerify(token, publicKey, {
    algorithms: ["ES256"],
    audience,
    currentDate: new Date(nowMs)
  })
  return payload
}
