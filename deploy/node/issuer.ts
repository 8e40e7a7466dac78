/** The external issuer of tokens: its settings, and how the node loads its keys. */
import { Effect, Schema, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { readerOf } from "../../actors/outbound/index.ts"
import { Issuer, keySetBytesMax, metadataUrl, parseKeySet, parseKeysUrl } from "../../http/index.ts"
import { outboundOf } from "../behaviors.ts"
import type { Clocks } from "../../runtime/index.ts"
import { reasonOf } from "../command-failure.ts"
import { keySetSourceOf, type NodeSettings } from "../settings/index.ts"

/** A setting of the issuer is wrong, or names an unusable file. */
export class IssuerUnusable extends Schema.TaggedError<IssuerUnusable>()("IssuerUnusable", {
  message: Schema.String
}) {}

const fileText = (file: string): Effect.Effect<string, string> =>
  Effect.tryPromise({ try: () => readFile(file, "utf8"), catch: reasonOf })

/**
 * The operator chose this address, which may be private inside a cluster. All other limits of
 * outbound requests apply.
 */
const everyNetwork = ["0.0.0.0/0", "::/0"]

/** The cause of these requests: nobody else uses the client. */
const operator = "operator"

/** Reads URLs of the issuer by its own client, which allows every address. */
const makeReader = Effect.fnUntraced(function*(
  caFile: string | undefined
): Effect.fn.Return<(url: string) => Effect.Effect<string, string>, IssuerUnusable, Scope.Scope> {
  const ca = caFile === undefined ? undefined : yield* Effect.mapError(
    fileText(caFile),
    (reason) => new IssuerUnusable({ message: `auth.ca cannot be read: ${reason}` })
  )
  const cause = { kind: "account", id: operator } as const
  const read = readerOf(yield* outboundOf(everyNetwork, ca), "allowed", cause)
  const accept = "application/jwk-set+json, application/json;q=0.9, */*;q=0.1"
  return (url) =>
    Effect.map(read(url, accept, keySetBytesMax), ({ bytes }) => new TextDecoder().decode(bytes))
})

/** Loads the keys from the URL in the issuer's metadata (OpenID Connect Discovery). */
const discoverKeys = (
  read: (url: string) => Effect.Effect<string, string>,
  issuer: string
): Effect.Effect<string, string> => {
  const url = metadataUrl(issuer)
  // The settings require `auth.jwks` for such an issuer.
  if (url === undefined) return Effect.fail("the issuer is not a URL")
  return Effect.flatMap(read(url), (text) => {
    const found = parseKeysUrl(text, issuer)
    return typeof found === "string" ? Effect.fail(found) : read(found.url)
  })
}

/** Reads the keys once at the start, so that a wrong file stops it. */
const loadFile = Effect.fnUntraced(function*(file: string) {
  const load = fileText(file)
  const unusable = (reason: string) =>
    new IssuerUnusable({ message: `auth.jwks is the file ${JSON.stringify(file)}: ${reason}` })
  const found = parseKeySet(yield* Effect.mapError(load, unusable))
  if (typeof found === "string") return yield* unusable(found)
  return load
})

/** The issuer of the settings; undefined without one. Its client ends with the scope. */
export const issuerOf = Effect.fnUntraced(function*(
  settings: NodeSettings,
  clocks: Clocks = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
): Effect.fn.Return<Issuer | undefined, IssuerUnusable, Scope.Scope> {
  const { authAudience, authCa, authIssuer, authJwks, authRolesClaim } = settings
  if (authIssuer === undefined || authAudience === undefined) return
  const isScopeRequired = settings.authScope === "required"
  if (isScopeRequired && authRolesClaim === "scope") {
    const message = "auth.scope is required, and auth.rolesClaim is scope: the words of that " +
      "claim are either scopes or roles; name another claim for the roles"
    return yield* new IssuerUnusable({ message })
  }
  const source = authJwks === undefined ? undefined : keySetSourceOf(authJwks)
  const load = source?._tag === "File"
    ? yield* loadFile(source.file)
    : source?._tag === "Inline"
    ? Effect.succeed(source.text)
    : source?._tag === "Url"
    ? (yield* makeReader(authCa))(source.url)
    : discoverKeys(yield* makeReader(authCa), authIssuer)
  return new Issuer(
    {
      issuer: authIssuer,
      audience: authAudience,
      algorithms: settings.authAlgorithms,
      clockToleranceMs: settings.authClockTolerance,
      isTypeRequired: settings.authTokenType === "at+jwt",
      claims: {
        account: settings.authAccountClaim,
        roles: authRolesClaim,
        rolesPrefix: settings.authRolesPrefix ?? "",
        isScopeRequired
      }
    },
    load,
    clocks
  )
})
