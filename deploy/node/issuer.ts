/** The outside issuer of tokens, as the settings say: where its keys are, and how they are had. */
import { Effect, Schema, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { makeOutbound, readerOf } from "../../actors/outbound/index.ts"
import { Issuer, keySetBytesMax, metadataUrl, parseKeySet, parseKeysUrl } from "../../http/index.ts"
import { type KeySetSource, keySetSourceOf, type NodeSettings } from "../settings/index.ts"
import { version } from "../version.ts"

/** A file or text of the issuer's settings cannot be used: the settings are wrong. */
export class IssuerUnusable extends Schema.TaggedError<IssuerUnusable>()("IssuerUnusable", {
  message: Schema.String
}) {}

/** Where an issuer's keys are. */
type KeyPlace =
  | KeySetSource
  /** Where its metadata say. */
  | { readonly _tag: "Issuer"; readonly metadataUrl: string }

/** By `auth.jwks`; without it the issuer is to tell, if it is a URL. */
const keyPlaceOf = (jwks: string | undefined, issuer: string): KeyPlace | undefined => {
  if (jwks !== undefined) return keySetSourceOf(jwks)
  const url = metadataUrl(issuer)
  return url === undefined ? undefined : { _tag: "Issuer", metadataUrl: url }
}

const reasonOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

const fileText = (file: string): Effect.Effect<string, string> =>
  Effect.tryPromise({ try: () => readFile(file, "utf8"), catch: reasonOf })

/**
 * The operator chose this address, wherever it leads: inside a cluster it is a private one. All
 * other bounds of outbound requests hold.
 */
const everyNetwork = ["0.0.0.0/0", "::/0"]

/** What reads URLs of the issuer: a client of its own, as its rule about addresses is another. */
const clientOf = Effect.fnUntraced(function*(
  caFile: string | undefined
): Effect.fn.Return<(url: string) => Effect.Effect<string, string>, IssuerUnusable, Scope.Scope> {
  const ca = caFile === undefined ? undefined : yield* Effect.mapError(
    fileText(caFile),
    (reason) => new IssuerUnusable({ message: `auth.ca cannot be read: ${reason}` })
  )
  const outbound = yield* makeOutbound({
    allow: everyNetwork,
    userAgent: `restante/${version}`,
    nowMs: () => Date.now(),
    random: Math.random,
    ...ca === undefined ? {} : { ca: [ca] }
  })
  const read = readerOf(outbound)
  const accept = "application/jwk-set+json, application/json;q=0.9, */*;q=0.1"
  return (url) =>
    Effect.map(read(url, accept, keySetBytesMax), ({ bytes }) => new TextDecoder().decode(bytes))
})

/** The keys of an issuer that tells itself where they are, as they are then (OIDC Discovery). */
const discovered = (
  read: (url: string) => Effect.Effect<string, string>,
  issuer: string,
  metadataUrl: string
): Effect.Effect<string, string> =>
  Effect.flatMap(read(metadataUrl), (text) => {
    const found = parseKeysUrl(text, issuer)
    return typeof found === "string" ? Effect.fail(found) : read(found.url)
  })

/** Reads the keys once at the start, so that a wrong file stops it. */
const checkedFile = Effect.fnUntraced(function*(file: string) {
  const load = fileText(file)
  const unusable = (reason: string) =>
    new IssuerUnusable({ message: `auth.jwks is the file ${JSON.stringify(file)}: ${reason}` })
  const found = parseKeySet(yield* Effect.mapError(load, unusable))
  if (typeof found === "string") return yield* unusable(found)
  return load
})

/** The issuer of the settings; undefined where there is none. Its client ends with the scope. */
export const issuerOf = Effect.fnUntraced(function*(
  settings: NodeSettings,
  nowMs: () => number = () => Date.now()
): Effect.fn.Return<Issuer | undefined, IssuerUnusable, Scope.Scope> {
  const { authAudience, authIssuer, authJwks } = settings
  if (authIssuer === undefined || authAudience === undefined) return
  const place = keyPlaceOf(authJwks, authIssuer)
  if (place === undefined) return
  const load = place._tag === "Url"
    ? (yield* clientOf(settings.authCa))(place.url)
    : place._tag === "Issuer"
    ? discovered(yield* clientOf(settings.authCa), authIssuer, place.metadataUrl)
    : place._tag === "File"
    ? yield* checkedFile(place.file)
    : Effect.succeed(place.text)
  return new Issuer(
    {
      issuer: authIssuer,
      audience: authAudience,
      algorithms: settings.authAlgorithms,
      clockToleranceMs: settings.authClockTolerance,
      claims: {
        account: settings.authAccountClaim,
        roles: settings.authRolesClaim,
        rolesPrefix: settings.authRolesPrefix ?? ""
      }
    },
    load,
    nowMs
  )
})
