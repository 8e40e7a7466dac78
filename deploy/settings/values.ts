/** The kinds of values of settings: a parser of text, and the expected form in words. */
import { Redacted, Result } from "effect"
import { IpNetwork } from "effect/net"
import { parseUrl } from "../../actors/index.ts"
import { claimPathCharsMax, claimPathDotsMax, type DiskFreeMin, parseKeySet,
  type Rate } from "../../http/index.ts"

/** The source of the keys in `auth.jwks`. */
type KeySetSource =
  | { readonly _tag: "Url"; readonly url: string }
  | { readonly _tag: "File"; readonly file: string }
  | { readonly _tag: "Inline"; readonly text: string }

/** Parses `auth.jwks`; undefined when it is none of the three. */
export const keySetSourceOf = (value: string): KeySetSource | undefined => {
  if (value.startsWith("{")) {
    return typeof parseKeySet(value) === "string" ? undefined : { _tag: "Inline", text: value }
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) {
    return value === "" ? undefined : { _tag: "File", file: value }
  }
  const url = parseUrl(value)
  if (url === undefined) return undefined
  const { hash, password, protocol, username } = url
  const isHttp = protocol === "http:" || protocol === "https:"
  return isHttp && hash + username + password === "" ? { _tag: "Url", url: value } : undefined
}

/** A kind of value. `expected` describes it in messages about a wrong value. */
export interface ValueKind<A> {
  readonly metavar: string
  readonly expected: string
  /** The value of a text; undefined when the text is malformed. */
  readonly parse: (text: string) => A | undefined
}

const kind = <A>(
  metavar: string,
  expected: string,
  parse: (text: string) => A | undefined
): ValueKind<A> => ({ metavar, expected, parse })

const msOf: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  sec: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000
}

const bytesOf: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4
}

const plainDuration = /^(\d+(?:\.\d+)?)(ms|s|sec|m|min|h|d|w)$/

const isoDuration =
  /^P(?=\d|T\d)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/

const sizePattern = /^(\d+) ?(B|KiB|MiB|GiB|TiB|)$/

/** `5s`, `1m`, `30min`, `2h`, `P30D`, or `0`, in ms; undefined for anything else. */
const durationMs = (text: string): number | undefined => {
  if (text === "0") return 0
  const plain = plainDuration.exec(text)
  if (plain !== null) return Math.round(Number(plain[1]) * (msOf[plain[2] ?? ""] ?? Number.NaN))
  const parts = isoDuration.exec(text)
  if (parts === null) return undefined
  const units = ["w", "d", "h", "m", "s"]
  const sum = units.reduce((ms, unit, at) => ms + Number(parts[at + 1] ?? 0) * (msOf[unit] ?? 0), 0)
  return Math.round(sum)
}

const sizeBytes = (text: string): number | undefined => {
  const parts = sizePattern.exec(text)
  return parts === null ? undefined : Number(parts[1]) * (bytesOf[parts[2] ?? ""] ?? Number.NaN)
}

const networkOf = (text: string): string | undefined => {
  const whole = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`
  return Result.isSuccess(IpNetwork.fromString(whole)) ? whole : undefined
}

/** The URL when it is http or https and has nothing after its host and port. */
const originOf = (text: string): string | undefined => {
  const url = parseUrl(text)
  if (url === undefined) return undefined
  const isHttp = url.protocol === "http:" || url.protocol === "https:"
  const bare = url.pathname === "/" && !/[?#@]/.test(text)
  return isHttp && bare ? url.origin : undefined
}

export const text = kind("text", "text", (written) => written === "" ? undefined : written)

/** A whole number between two bounds, both included. */
export const integer = (minimum: number, maximum: number) =>
  kind("number", `a whole number from ${minimum} to ${maximum}`, (digits) => {
    const value = Number(digits)
    return /^\d{1,15}$/.test(digits) && value >= minimum && value <= maximum ? value : undefined
  })

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

const listenPattern = /^(?:(?<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):)?(?<port>\d{1,5})$/

/** A port of this machine's loopback, or a host and port. */
export const listenAddress = kind(
  "host:port",
  "a port, or a host and a port, such as 9464, 0.0.0.0:9464 or [::]:9464",
  (written): ListenAddress | undefined => {
    const { host = "127.0.0.1", port = "" } = listenPattern.exec(written)?.groups ?? {}
    const number = Number(port)
    return port !== "" && number >= 1 && number <= 65_535
      ? { host: host.replace(/^\[(.*)\]$/, "$1"), port: number }
      : undefined
  }
)

/** One of these texts or numbers. */
export const oneOf = <const Choice extends string | number>(...choices: ReadonlyArray<Choice>) =>
  kind(
    choices.join("|"),
    `one of ${choices.join(", ")}`,
    (written) => choices.find((choice) => String(choice) === written)
  )

const namePattern = /^[A-Za-z0-9_=-]{1,100}$/

export const isNodeName = (text: string): boolean => namePattern.test(text)

/** Name of a node. Keys in NATS contain it, which limits its characters. */
export const nodeName = kind(
  "name",
  "1 to 100 characters of A-Z, a-z, 0-9, _, = and -",
  (name) => isNodeName(name) ? name : undefined
)

/** The address of a NATS server, without credentials, since addresses are logged. */
const natsServerOf = (text: string): string | undefined => {
  const whole = /^[a-z]+:\/\//.test(text) ? text : `nats://${text}`
  const url = /^(nats|tls):\/\//.test(whole) ? parseUrl(whole) : undefined
  if (url === undefined) return undefined
  const { hash, hostname, password, pathname, search, username } = url
  const bare = hash + password + search + username === "" && (pathname === "" || pathname === "/")
  return bare && hostname !== "" ? whole.replace(/\/$/, "") : undefined
}

export const natsServer = kind(
  "url",
  "servers such as nats://host:4222 or tls://host:4222, without credentials",
  natsServerOf
)

const durationExamples = "500ms, 5s, 1m, 30min, 2h, 7d or P30D"

/** Time in ms. */
export const duration = kind("duration", `a duration such as ${durationExamples}`, durationMs)

/** Time in ms, above 0. */
export const positiveDuration = kind(
  "duration",
  `a duration above 0 such as ${durationExamples}`,
  (written) => durationMs(written) || undefined
)

const rateWindowMaxMs = 86_400_000

const rateOf = (written: string): Rate | undefined => {
  const [, quota = "", window = ""] = /^(\d{1,9})\/(.+)$/.exec(written) ?? []
  const windowMs = durationMs(/^[a-z]/.test(window) ? `1${window}` : window)
  // The RateLimit header field has whole seconds.
  if (windowMs === undefined || windowMs === 0 || windowMs % 1000 !== 0) return undefined
  return Number(quota) > 0 && windowMs <= rateWindowMaxMs
    ? { quota: Number(quota), windowMs }
    : undefined
}

export const rate = kind(
  "rate",
  "none, or requests and whole seconds such as 600/1m, 50/s or 10000/1h",
  (written): Rate | "none" | undefined => written === "none" ? "none" : rateOf(written)
)

/** Size in bytes. */
export const size = kind(
  "size",
  "a size above 0 such as 65536, 256KiB, 10MiB or 1GiB",
  (written) => sizeBytes(written) || undefined
)

const percentOf = (written: string): number | undefined => {
  const percent = Number(/^(\d{1,2}(?:\.\d{1,3})?) ?%$/.exec(written)?.[1] ?? Number.NaN)
  return Number.isNaN(percent) ? undefined : percent
}

/** The least free space of a disk: a share of it, or a size; 0 for none. */
export const freeSpace = kind(
  "percent|size",
  "a share below 100 % such as 10%, or a size such as 5GiB, or 0",
  (written): DiskFreeMin | undefined => {
    const percent = percentOf(written)
    if (percent !== undefined) return { percent }
    const bytes = sizeBytes(written)
    return bytes === undefined ? undefined : { bytes }
  }
)

export const origin = kind(
  "url",
  "an http or https URL of a host only, such as https://post.example.org",
  originOf
)

/** An origin, `*` for all, or `none`. */
export const corsOrigin = kind(
  "origin",
  "*, none, or an origin such as https://app.example.org",
  (written) => written === "*" || written === "none" ? written : originOf(written)
)

/** An address prefix in CIDR form; a bare address is a prefix of that one address. */
export const network = kind(
  "prefix",
  "address prefixes such as 10.0.0.0/8, 127.0.0.1 or fd00::/8",
  networkOf
)

/** A token: visible ASCII without spaces. It is never printed. */
export const secret = kind(
  "token",
  "visible ASCII characters without spaces",
  (written) => /^[\x21-\x7e]+$/.test(written) ? Redacted.make(written) : undefined
)

/** The base of a collector's URLs, without credentials, since addresses are logged. */
export const collector = kind(
  "url",
  "an http or https URL without credentials and query, such as http://127.0.0.1:4318",
  (written): string | undefined => {
    const url = parseUrl(written)
    if (url === undefined) return undefined
    const { hash, password, protocol, search, username } = url
    const isHttp = protocol === "http:" || protocol === "https:"
    return isHttp && hash + password + search + username === ""
      ? url.href.replace(/\/+$/, "")
      : undefined
  }
)

const pairsMax = 64

const pairPattern = /^([^=]+)=(.*)$/

/**
 * Pairs as OpenTelemetry writes them: `key=value,key=value`, both percent-encoded (W3C Baggage
 * §3.3). Undefined if one is malformed, or there are too many.
 */
const pairsOf = (written: string): Readonly<Record<string, string>> | undefined => {
  const parts = written.split(",").map((part) => part.trim()).filter((part) => part !== "")
  if (parts.length === 0 || parts.length > pairsMax) return undefined
  const pairs: Array<readonly [string, string]> = []
  for (const part of parts) {
    const [, key = "", value = ""] = pairPattern.exec(part) ?? []
    if (key.trim() === "") return undefined
    try {
      pairs.push([decodeURIComponent(key.trim()), decodeURIComponent(value.trim())])
    } catch {
      return undefined
    }
  }
  return Object.fromEntries(pairs)
}

/** Attributes of a resource (OpenTelemetry). */
export const attributes = kind(
  "key=value,…",
  "at most 64 attributes, percent-encoded, such as deployment.environment.name=production",
  pairsOf
)

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

const fieldValue = /^[\x20-\x7e]*$/

/** Fields of the header of a request. They may be credentials, and are never printed. */
export const headerFields = kind(
  "name=value,…",
  "at most 64 header fields, percent-encoded, such as api-key=…,Authorization=Bearer%20…",
  (written) => {
    const fields = pairsOf(written)
    const isValid = fields !== undefined && Object.entries(fields)
      .every(([name, value]) => fieldName.test(name) && fieldValue.test(value))
    return isValid ? Redacted.make(fields) : undefined
  }
)

/** A share of all. */
export const ratio = kind(
  "ratio",
  "a number from 0 to 1 such as 0.1",
  (written): number | undefined => {
    const value = Number(written)
    return /^\d(?:\.\d{1,9})?$/.test(written) && value <= 1 ? value : undefined
  }
)

/** A URI at which people are reached. */
export const contact = kind(
  "uri",
  "a mailto:, https: or tel: URI such as mailto:security@example.org",
  (written) =>
    /^(mailto|https|tel):[\x21-\x7e]+$/.test(written) && parseUrl(written) !== undefined
      ? written
      : undefined
)

/** Values separated by commas. */
export const list = <A>(
  of: ValueKind<A>,
  minimum = 0,
  maximum = 64
): ValueKind<ReadonlyArray<A>> => {
  const count = `${minimum === 0 ? "at most" : `${minimum} to`} ${maximum}`
  return kind(
    `${of.metavar},…`,
    `${count} values, separated by commas: ${of.expected}`,
    (written) => {
      const parts = written.split(",").map((part) => part.trim()).filter((part) => part !== "")
      const values = parts.map(of.parse).filter((value) => value !== undefined)
      const isWhole = values.length === parts.length
      return isWhole && values.length >= minimum && values.length <= maximum ? values : undefined
    }
  )
}

/** Signatures by a private key only: with a shared secret, a verifier can also sign. */
export const algorithm = oneOf(
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const,
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"] as const
)

/** The name of a claim, or a path to one. */
export const claim = kind(
  "claim",
  "the name of a claim such as sub, or a path such as realm_access.roles",
  (path) =>
    path.length <= claimPathCharsMax && path.split(".").length <= claimPathDotsMax + 1 &&
      !/(^|\.)(\.|$)/.test(path)
      ? path
      : undefined
)

export const keySet = kind(
  "url|file",
  "an http or https URL without credentials, a file, or a JWK Set of public keys",
  (written) => keySetSourceOf(written) === undefined ? undefined : written
)
