/**
 * The settings of a node: where each value comes from, and whether it is one. A flag overrides an
 * environment variable, which overrides cluster.config.ts.
 */
import { Redacted, Result, Schema } from "effect"
import { clusterConfig } from "../../cluster.config.ts"
import { claimPathCharsMax, claimPathDotsMax, clockToleranceMaxMs,
  metadataUrl } from "../../http/index.ts"
import { optional, type Setting, setting, withoutFlag } from "./setting.ts"
import { corsOrigin, duration, givenPlaceOf, integer, list, natsServer, network, nodeName,
  oneNumberOf, oneOf, origin, rate, reading, secret, size, span, text,
  type ValueKind } from "./values.ts"

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
    if (typeof authIssuer === "string" && metadataUrl(authIssuer) === undefined) {
      const why = "auth.issuer is no URL at which the issuer could tell where its keys are"
      needs(authJwks, "auth.jwks", "AUTH_JWKS", why)
    }
  }
  if (typeof authClockTolerance === "number" && authClockTolerance > clockToleranceMaxMs) {
    problems.push("auth.clockTolerance is more than 5m; a longer one keeps expired tokens alive")
  }
  return problems
}

/* The settings of a node that is one of a cluster. */

const serversMax = 64

const bucketsMax = 64

const { cluster, nats } = clusterConfig

/** In the order in which `restante config` shows them. */
export const clusterTable = {
  natsUrl: optional(
    setting(
      "nats.url",
      "NATS_URL",
      list(natsServer, 1, serversMax),
      nats.url,
      "Servers of NATS; unset: the embedded store"
    )
  ),
  natsUser: optional(setting("nats.user", "NATS_USER", text, nats.user, "User at NATS")),
  natsPassword: withoutFlag(
    optional(setting("nats.password", "NATS_PASSWORD", secret, nats.password, "Password at NATS"))
  ),
  natsToken: withoutFlag(
    optional(setting("nats.token", "NATS_TOKEN", secret, nats.token, "Token for NATS"))
  ),
  natsNkeySeed: withoutFlag(
    optional(
      setting("nats.nkeySeed", "NATS_NKEY_SEED", secret, nats.nkeySeed, "Seed of an nkey for NATS")
    )
  ),
  natsCreds: optional(
    setting("nats.creds", "NATS_CREDS", text, nats.creds, "File of credentials for NATS")
  ),
  natsCa: optional(
    setting("nats.ca", "NATS_CA", text, nats.ca, "File of the authority of NATS's certificates")
  ),
  natsCert: optional(
    setting("nats.cert", "NATS_CERT", text, nats.cert, "File of this node's certificate for NATS")
  ),
  natsKey: optional(
    setting("nats.key", "NATS_KEY", text, nats.key, "File of that certificate's key")
  ),
  natsReplicas: optional(
    setting(
      "nats.replicas",
      "NATS_REPLICAS",
      oneNumberOf(1, 3, 5),
      nats.replicas,
      "Copies of each stream"
    )
  ),
  nodeId: optional(
    setting(
      "cluster.nodeId",
      "NODE_ID",
      nodeName,
      cluster.nodeId,
      "Name of this node in its cluster"
    )
  ),
  clusterBuckets: setting(
    "cluster.buckets",
    "CLUSTER_BUCKETS",
    integer(1, bucketsMax),
    cluster.buckets,
    "Streams that share the actors"
  )
}

/* Every setting of a node, in the order in which `restante config` shows them. */

const { content, cors, documents, limits, log, mailboxes, outbound, outgoing, rates } =
  clusterConfig

const retryAttemptsMax = 32

const networksMax = 256

const levels = oneOf("trace", "debug", "info", "warn", "error", "none")

const adminToken = withoutFlag(optional(
  setting("adminToken", "ADMIN_TOKEN", secret, clusterConfig.adminToken, "Token of account admin")
))

/** Every setting, by its path in cluster.config.ts. */
export const table = {
  host: setting("host", "HOST", text, clusterConfig.host, "Address to listen on"),
  port: setting("port", "PORT", integer(0, 65_535), clusterConfig.port, "TCP port, 0 for any"),
  baseUrl: optional(
    setting("baseUrl", "BASE_URL", origin, clusterConfig.baseUrl, "Origin of every URI given out")
  ),
  dataDir: setting("dataDir", "DATA_DIR", text, clusterConfig.dataDir, "Folder of the store"),
  store: optional(setting(
    "store.engine",
    "STORE",
    oneOf("rocksdb", "leveldb"),
    clusterConfig.store.engine,
    "Database of the folder"
  )),
  adminToken,
  ...authTable,
  rateLimitAddress: optional(
    setting(
      "rates.address",
      "RATE_LIMIT_ADDRESS",
      rate,
      rates.address,
      "Requests that one address may make"
    )
  ),
  rateLimitAccount: optional(
    setting(
      "rates.account",
      "RATE_LIMIT_ACCOUNT",
      rate,
      rates.account,
      "Requests that one account may make"
    )
  ),
  logLevel: setting("log.level", "LOG_LEVEL", levels, log.level, "Least severe level written"),
  logFormat: setting(
    "log.format",
    "LOG_FORMAT",
    oneOf("auto", "json", "text"),
    log.format,
    "JSON lines, or text for people"
  ),
  retrySchedule: setting(
    "outgoing.retrySchedule",
    "RETRY_SCHEDULE",
    list(duration, 1, retryAttemptsMax),
    outgoing.retrySchedule,
    "Wait before each attempt"
  ),
  outgoingKeep: setting(
    "outgoing.keep",
    "OUTGOING_KEEP",
    duration,
    outgoing.keep,
    "How long an ended notification stays"
  ),
  outboundAllow: setting(
    "outbound.allow",
    "OUTBOUND_ALLOW",
    list(network, 0, networksMax),
    outbound.allow,
    "Non-public prefixes that may be reached"
  ),
  contentPublish: setting(
    "content.publish",
    "CONTENT_PUBLISH",
    oneOf("anyone", "accounts"),
    content.publish,
    "Who may publish content"
  ),
  contentBytesMax: setting(
    "content.bytesMax",
    "CONTENT_BYTES_MAX",
    size,
    content.bytesMax,
    "Largest content resource"
  ),
  documentBytesMax: setting(
    "documents.bytesMax",
    "DOCUMENT_BYTES_MAX",
    size,
    documents.bytesMax,
    "Largest document"
  ),
  xmlDepthMax: setting(
    "documents.xmlDepthMax",
    "XML_DEPTH_MAX",
    integer(4, 256),
    documents.xmlDepthMax,
    "Deepest nesting of XML elements"
  ),
  recipientsMax: setting(
    "documents.recipientsMax",
    "RECIPIENTS_MAX",
    integer(1, 100_000),
    documents.recipientsMax,
    "Recipients of one notification"
  ),
  retention: setting(
    "mailboxes.retention",
    "RETENTION",
    duration,
    mailboxes.retention,
    "How long a retrieved notification is kept"
  ),
  corsOrigin: setting(
    "cors.origin",
    "CORS_ORIGIN",
    corsOrigin,
    cors.origin,
    "Origin whose pages may read answers"
  ),
  residentActors: setting(
    "limits.residentActors",
    "RESIDENT_ACTORS",
    integer(1, 100_000_000),
    limits.residentActors,
    "Actors kept in memory"
  ),
  inboxMax: setting(
    "limits.inboxMax",
    "ACTOR_QUEUE_MAX",
    integer(1, 10_000_000),
    limits.inboxMax,
    "Messages that one actor holds"
  ),
  idleTimeout: setting(
    "limits.idleTimeout",
    "IDLE_TIMEOUT",
    span,
    limits.idleTimeout,
    "An actor sleeps after so long without a message"
  ),
  drainTimeout: setting(
    "limits.drainTimeout",
    "DRAIN_TIMEOUT",
    span,
    limits.drainTimeout,
    "How long a stopping node waits for what is under way"
  ),
  ...clusterTable
}

/* The settings of an outside issuer of tokens, and of what is in front of the service. */

type Table = typeof table

type Value<S> = S extends Setting<infer A, infer Needed> ? Needed extends true ? A : A | undefined
  : never

/** The values of all settings: times in ms, sizes in bytes. */
export type NodeSettings = { readonly [K in keyof Table]: Value<Table[K]> }

/** Every setting in the order in which `restante config` shows them. */
export const allSettings: ReadonlyArray<Setting<unknown>> = Object.values(table)

export type SettingSource =
  | "cluster.config.ts"
  | "unset"
  | `environment ${string}`
  | `flag --${string}`

/** A setting as it was found. `text` is what was written, `<set>` for a secret. */
export interface FoundSetting {
  readonly setting: Setting<unknown>
  readonly source: SettingSource
  readonly text: string | undefined
}

/** A value that is not one of its setting, with the message that stops the start. */
export interface WrongSetting {
  readonly message: string
}

export interface LoadedSettings {
  readonly settings: NodeSettings
  readonly found: ReadonlyArray<FoundSetting>
}

const written = (
  { env, fallback, flag }: Setting<unknown>,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>
): readonly [SettingSource, string | undefined] => {
  const byFlag = flag === undefined ? undefined : flags[flag]
  if (byFlag !== undefined) return [`flag --${flag}`, byFlag]
  const byEnvironment = environment[env]?.trim()
  if (byEnvironment !== undefined && byEnvironment !== "") {
    return [`environment ${env}`, byEnvironment]
  }
  return fallback === undefined ? ["unset", undefined] : ["cluster.config.ts", fallback]
}

const wrong = (one: Setting<unknown>, source: SettingSource, value: string): string => {
  const shown = one.kind === secret ? "<set>" : JSON.stringify(value)
  return `${one.name} is ${shown} (from ${source}); expected ${one.kind.expected}`
}

/**
 * Reads every setting. `environment` is by variable, where an empty one counts as unset; `flags` by
 * name without dashes. Fails with all wrong values at once.
 */
export const loadSettings = (
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>> = {}
): Result.Result<LoadedSettings, WrongSetting> => {
  const values: Record<string, unknown> = {}
  const found: Array<FoundSetting> = []
  const problems: Array<string> = []
  for (const [key, one] of Object.entries<Setting<unknown>>(table)) {
    const [source, value] = written(one, environment, flags)
    if (value === undefined) {
      found.push({ setting: one, source, text: undefined })
      continue
    }
    const decoded = Schema.decodeUnknownResult(one.kind.schema)(value)
    if (Result.isFailure(decoded)) problems.push(wrong(one, source, value))
    else values[key] = decoded.success
    found.push({ setting: one, source, text: one.kind === secret ? "<set>" : value })
  }
  problems.push(...authProblems(values))
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  // The loop above has decoded each key of the table by its own schema.
  return Result.succeed({ settings: values as NodeSettings, found })
}

/** The origin of every URI given out. `port` is the one that is listened on, as `PORT` may be 0. */
export const baseUrlOf = (settings: NodeSettings, port: number): string =>
  settings.baseUrl ?? `http://localhost:${port}`

/** The admin token, where one is set. */
export const adminTokenOf = (settings: NodeSettings): string | undefined =>
  settings.adminToken === undefined ? undefined : Redacted.value(settings.adminToken)
