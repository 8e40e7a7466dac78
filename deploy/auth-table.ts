/** The settings of an outside issuer of tokens, and of what is in front of the service. */
import { Schema } from "effect"
import { clusterConfig } from "../cluster.config.ts"
import { metadataUrlOf } from "../http/issuer/discovery.ts"
import { claimPathCharsMax, claimPathDotsMax, clockToleranceMaxMs } from "../http/issuer/limits.ts"
import { givenPlaceOf } from "./issuer.ts"
import { optional, setting } from "./setting.ts"
import { duration, list, network, oneOf, reading, text, type ValueKind } from "./values.ts"

const { auth, proxies } = clusterConfig

const audiencesMax = 64
const proxyNetworksMax = 256

/** Signatures by a private key only: with a shared secret, whoever can check can sign too. */
const algorithm = oneOf(
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519"
)
/** The name of a claim, or a path to one. */
const claim: ValueKind<string> = {
  schema: reading(
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
const keySet: ValueKind<string> = {
  schema: reading(Schema.String, (value) => givenPlaceOf(value) === undefined ? undefined : value),
  expected: "an http or https URL without credentials, a file, or a JWK Set of public keys",
  metavar: "url|file"
}

/** In the order in which `restante config` shows them. */
export const authTable = {
  authJwks: optional(
    setting("auth.jwks", "AUTH_JWKS", keySet, auth.jwks, "Keys of the issuer of Bearer JWTs")
  ),
  authIssuer: optional(
    setting("auth.issuer", "AUTH_ISSUER", text, auth.issuer, "iss of its tokens")
  ),
  authAudience: optional(
    setting(
      "auth.audience",
      "AUTH_AUDIENCE",
      list(text, 1, audiencesMax),
      auth.audience,
      "aud of tokens for this service"
    )
  ),
  authAccountClaim: setting(
    "auth.accountClaim",
    "AUTH_ACCOUNT_CLAIM",
    claim,
    auth.accountClaim,
    "Claim with the account's name"
  ),
  authRolesClaim: setting(
    "auth.rolesClaim",
    "AUTH_ROLES_CLAIM",
    claim,
    auth.rolesClaim,
    "Claim with its roles"
  ),
  authRolesPrefix: optional(
    setting(
      "auth.rolesPrefix",
      "AUTH_ROLES_PREFIX",
      text,
      auth.rolesPrefix,
      "What the issuer's names of roles begin with"
    )
  ),
  authClockTolerance: setting(
    "auth.clockTolerance",
    "AUTH_CLOCK_TOLERANCE",
    duration,
    auth.clockTolerance,
    "How far the issuer's clock may be off"
  ),
  authAlgorithms: setting(
    "auth.algorithms",
    "AUTH_ALGORITHMS",
    list(algorithm, 1),
    auth.algorithms,
    "Algorithms of its signatures"
  ),
  authCa: optional(
    setting("auth.ca", "AUTH_CA", text, auth.ca, "File of the authority of its key server")
  ),
  trustedProxies: setting(
    "proxies.trusted",
    "TRUSTED_PROXIES",
    list(network, 0, proxyNetworksMax),
    proxies.trusted,
    "Proxies whose X-Forwarded-For is believed"
  )
}

/** What must be true of several settings at once. */
export interface AuthValues {
  readonly authJwks?: unknown
  readonly authIssuer?: unknown
  readonly authAudience?: unknown
  readonly authClockTolerance?: unknown
}

/** What is wrong with the issuer's settings together, for people. */
export const authProblems = (values: AuthValues): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const needs = (is: unknown, name: string, env: string, because: string): void => {
    if (is === undefined) problems.push(`${name} is not set (${env}); ${because}`)
  }
  const { authAudience, authClockTolerance, authIssuer, authJwks } = values
  if (authJwks !== undefined) {
    const because = "with auth.jwks it says which tokens are accepted"
    needs(authIssuer, "auth.issuer", "AUTH_ISSUER", because)
    needs(authAudience, "auth.audience", "AUTH_AUDIENCE", because)
  } else if (authIssuer !== undefined || authAudience !== undefined) {
    const because = "the two of them say which tokens are accepted"
    needs(authIssuer, "auth.issuer", "AUTH_ISSUER", because)
    needs(authAudience, "auth.audience", "AUTH_AUDIENCE", because)
    if (typeof authIssuer === "string" && metadataUrlOf(authIssuer) === undefined) {
      const why = "auth.issuer is no URL at which the issuer could tell where its keys are"
      needs(authJwks, "auth.jwks", "AUTH_JWKS", why)
    }
  }
  if (typeof authClockTolerance === "number" && authClockTolerance > clockToleranceMaxMs) {
    problems.push("auth.clockTolerance is more than 5m; a longer one keeps expired tokens alive")
  }
  return problems
}
