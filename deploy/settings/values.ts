/** The kinds of values of settings: a schema from text, and the expected form in words. */
import { Effect, Redacted, Result, Schema, SchemaGetter, SchemaIssue } from "effect"
import { IpNetwork } from "effect/net"
import { claimPathCharsMax, claimPathDotsMax, parseKeySet, type Rate } from "../../http/index.ts"

/** The source of the keys in `auth.jwks`. */
export type KeySetSource =
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
  if (!URL.canParse(value)) return undefined
  const { hash, password, protocol, username } = new URL(value)
  const isHttp = protocol === "http:" || protocol === "https:"
  return isHttp && hash + username + password === "" ? { _tag: "Url", url: value } : undefined
}

/** A kind of value. `expected` describes it in messages about a wrong value. */
export interface ValueKind<A> {
  readonly schema: Schema.Codec<A, string>
  readonly expected: string
  readonly metavar: string
}

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

/** `5s`, `1m`, `30min`, `2h`, `P30D`, or `0`, in ms; undefined when it is no duration. */
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
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const isHttp = url.protocol === "http:" || url.protocol === "https:"
  const bare = url.pathname === "/" && !/[?#@]/.test(text)
  return isHttp && bare ? url.origin : undefined
}

/** A schema from text by a parser that returns undefined for malformed text. */
const parsedBy = <A>(
  to: Schema.Codec<A>,
  parse: (text: string) => A | undefined
): Schema.Codec<A, string> =>
  Schema.String.pipe(Schema.decodeTo(to, {
    decode: SchemaGetter.transformEffect((text: string) => {
      const value = parse(text)
      return value === undefined
        ? Effect.fail(new SchemaIssue.InvalidValue())
        : Effect.succeed(value)
    }),
    encode: SchemaGetter.transform(String)
  }))

export const text: ValueKind<string> = {
  schema: Schema.NonEmptyString,
  expected: "text",
  metavar: "text"
}

/** A whole number between two bounds, both included. */
export const integer = (minimum: number, maximum: number): ValueKind<number> => ({
  schema: parsedBy(
    Schema.Int.check(Schema.isBetween({ minimum, maximum })),
    (digits) => /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
  ),
  expected: `a whole number from ${minimum} to ${maximum}`,
  metavar: "number"
})

export const oneOf = <const Names extends ReadonlyArray<string>>(
  ...names: Names
): ValueKind<Names[number]> => ({
  schema: Schema.Literals(names),
  expected: `one of ${names.join(", ")}`,
  metavar: names.join("|")
})

export const oneNumberOf = <const Numbers extends ReadonlyArray<number>>(
  ...numbers: Numbers
): ValueKind<Numbers[number]> => ({
  schema: parsedBy(
    Schema.Literals(numbers),
    (digits) => numbers.find((one) => String(one) === digits)
  ),
  expected: `one of ${numbers.join(", ")}`,
  metavar: numbers.join("|")
})

const namePattern = /^[A-Za-z0-9_=-]{1,100}$/

export const isNodeName = (text: string): boolean => namePattern.test(text)

/** Name of a node. Keys in NATS contain it, which limits its characters. */
export const nodeName: ValueKind<string> = {
  schema: Schema.String.check(Schema.isPattern(namePattern)),
  expected: "1 to 100 characters of A-Z, a-z, 0-9, _, = and -",
  metavar: "name"
}

/** The address of a NATS server, without credentials, since addresses are logged. */
const natsServerOf = (text: string): string | undefined => {
  const whole = /^[a-z]+:\/\//.test(text) ? text : `nats://${text}`
  if (!/^(nats|tls):\/\//.test(whole) || !URL.canParse(whole)) return undefined
  const { hash, hostname, password, pathname, search, username } = new URL(whole)
  const bare = hash + password + search + username === "" && (pathname === "" || pathname === "/")
  return bare && hostname !== "" ? whole.replace(/\/$/, "") : undefined
}

export const natsServer: ValueKind<string> = {
  schema: parsedBy(Schema.String, natsServerOf),
  expected: "servers such as nats://host:4222 or tls://host:4222, without credentials",
  metavar: "url"
}

/** Time in ms. */
export const duration: ValueKind<number> = {
  schema: parsedBy(Schema.Int, durationMs),
  expected: "a duration such as 500ms, 5s, 1m, 30min, 2h, 7d or P30D",
  metavar: "duration"
}

/** Time in ms, above 0. */
export const positiveDuration: ValueKind<number> = {
  schema: parsedBy(Schema.Int.check(Schema.isGreaterThan(0)), durationMs),
  expected: "a duration above 0 such as 500ms, 5s, 1m, 30min, 2h, 7d or P30D",
  metavar: "duration"
}

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

export const rate: ValueKind<Rate> = {
  schema: parsedBy(
    Schema.Struct({ quota: Schema.Int, windowMs: Schema.Int }),
    rateOf
  ),
  expected: "requests and whole seconds such as 600/1m, 50/s or 10000/1h",
  metavar: "rate"
}

/** Size in bytes. */
export const size: ValueKind<number> = {
  schema: parsedBy(Schema.Int.check(Schema.isGreaterThan(0)), sizeBytes),
  expected: "a size above 0 such as 65536, 256KiB, 10MiB or 1GiB",
  metavar: "size"
}

export const origin: ValueKind<string> = {
  schema: parsedBy(Schema.String, originOf),
  expected: "an http or https URL of a host only, such as https://post.example.org",
  metavar: "url"
}

/** An origin, or `*` for all. */
export const corsOrigin: ValueKind<string> = {
  schema: parsedBy(
    Schema.String,
    (value) => value === "*" || value === "none" ? value : originOf(value)
  ),
  expected: "*, none, or an origin such as https://app.example.org",
  metavar: "origin"
}

/** An address prefix in CIDR form; a bare address is a prefix of that one address. */
export const network: ValueKind<string> = {
  schema: parsedBy(Schema.String, networkOf),
  expected: "address prefixes such as 10.0.0.0/8, 127.0.0.1 or fd00::/8",
  metavar: "prefix"
}

/** A token: visible ASCII without spaces. It is never printed. */
export const secret: ValueKind<Redacted.Redacted> = {
  schema: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]+$/)).pipe(
    Schema.decodeTo(Schema.Redacted(Schema.String), {
      decode: SchemaGetter.transform((value: string) => Redacted.make(value)),
      encode: SchemaGetter.transform((value: Redacted.Redacted) => Redacted.value(value))
    })
  ),
  expected: "visible ASCII characters without spaces",
  metavar: "token"
}

/** Values separated by commas. */
export const list = <A>(
  kind: ValueKind<A>,
  minimum = 0,
  maximum = 64
): ValueKind<ReadonlyArray<A>> => ({
  schema: Schema.String.pipe(
    Schema.decodeTo(
      Schema.Array(kind.schema).check(Schema.isBetweenLength(minimum, maximum)),
      {
        decode: SchemaGetter.transform((values: string) =>
          values.split(",").map((value) => value.trim()).filter((value) => value !== "")
        ),
        encode: SchemaGetter.transform((values: ReadonlyArray<string>) => values.join(","))
      }
    )
  ),
  expected: `${
    minimum === 0 ? "at most" : `${minimum} to`
  } ${maximum} values, separated by commas: ${kind.expected}`,
  metavar: `${kind.metavar},…`
})

/** Signatures by a private key only: with a shared secret, a verifier can also sign. */
export const algorithm = oneOf(
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const,
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"] as const
)

/** The name of a claim, or a path to one. */
export const claim: ValueKind<string> = {
  schema: parsedBy(
    Schema.String,
    (path) =>
      path.length <= claimPathCharsMax && path.split(".").length <= claimPathDotsMax + 1 &&
        !/(^|\.)(\.|$)/.test(path)
        ? path
        : undefined
  ),
  expected: "the name of a claim such as sub, or a path such as realm_access.roles",
  metavar: "claim"
}

export const keySet: ValueKind<string> = {
  schema: parsedBy(
    Schema.String,
    (value) => keySetSourceOf(value) === undefined ? undefined : value
  ),
  expected: "an http or https URL without credentials, a file, or a JWK Set of public keys",
  metavar: "url|file"
}
