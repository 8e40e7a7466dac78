/**
 * Every setting of a node, and where its value comes from: a flag overrides an environment
 * variable, which overrides cluster.config.ts.
 */
import { Redacted, Result, Schema } from "effect"
import { type ClusterConfig, clusterConfig } from "../../cluster.config.ts"
import { clockToleranceMaxMs, metadataUrl } from "../../http/index.ts"
import { algorithm, claim, corsOrigin, duration, integer, keySet, list, natsServer, network,
  nodeName, oneNumberOf, oneOf, origin, positiveDuration, rate, secret, size, text,
  type ValueKind } from "./values.ts"

type Keys<Config> = {
  readonly [K in keyof Config & string]: Config[K] extends ReadonlyArray<unknown> | undefined ? K
    : Config[K] extends object ? `${K}.${Keys<Config[K]>}`
    : K
}[keyof Config & string]

/** One setting: its key in cluster.config.ts, its environment variable and its flag. */
export interface Setting<A, Required extends boolean = boolean> {
  readonly key: Keys<ClusterConfig>
  readonly variable: string
  /** Without the dashes. A secret has none, since every user of the machine can see flags. */
  readonly flag: string | undefined
  readonly description: string
  readonly kind: ValueKind<A>
  /** Whether it always has a value. Type-level only. */
  readonly required: Required
}

const required = <A>(
  key: Keys<ClusterConfig>,
  variable: string,
  kind: ValueKind<A>,
  description: string
): Setting<A, true> => {
  const flag = variable.toLowerCase().replaceAll("_", "-")
  return { key, variable, flag, kind, description, required: true }
}

const optional = <A>(...[key, variable, kind, description]: Parameters<typeof required<A>>) => {
  const setting = required(key, variable, kind, description)
  return { ...setting, required: false } satisfies Setting<A, false>
}

const optionalSecret = (key: Keys<ClusterConfig>, variable: string, description: string) =>
  ({ ...optional(key, variable, secret, description), flag: undefined }) as const

/** In the order in which `restante config` prints them. */
const table = {
  host: required("host", "HOST", text, "Address to listen on"),
  port: required("port", "PORT", integer(0, 65_535), "TCP port, 0 for any"),
  baseUrl: optional("baseUrl", "BASE_URL", origin, "Origin of every URI of the service"),
  dataDir: required("dataDir", "DATA_DIR", text, "Folder of the store"),
  storageEngine: optional(
    "storage.engine",
    "STORAGE_ENGINE",
    oneOf("rocksdb", "leveldb"),
    "Database of the folder"
  ),
  adminToken: optionalSecret("adminToken", "ADMIN_TOKEN", "Token of account admin"),
  authJwks: optional("auth.jwks", "AUTH_JWKS", keySet, "Keys of the issuer of Bearer JWTs"),
  authIssuer: optional("auth.issuer", "AUTH_ISSUER", text, "iss of its tokens"),
  authAudience: optional(
    "auth.audience",
    "AUTH_AUDIENCE",
    list(text, 1, 64),
    "aud of tokens for this service"
  ),
  authAccountClaim: required(
    "auth.accountClaim",
    "AUTH_ACCOUNT_CLAIM",
    claim,
    "Claim with the account's name"
  ),
  authRolesClaim: required("auth.rolesClaim", "AUTH_ROLES_CLAIM", claim, "Claim with its roles"),
  authRolesPrefix: optional(
    "auth.rolesPrefix",
    "AUTH_ROLES_PREFIX",
    text,
    "Prefix of the issuer's role names"
  ),
  authClockTolerance: required(
    "auth.clockTolerance",
    "AUTH_CLOCK_TOLERANCE",
    duration,
    "Largest offset of the issuer's clock"
  ),
  authAlgorithms: required(
    "auth.algorithms",
    "AUTH_ALGORITHMS",
    list(algorithm, 1),
    "Algorithms of its signatures"
  ),
  authCa: optional("auth.ca", "AUTH_CA", text, "File of the authority of its key server"),
  trustedProxies: required(
    "proxies.trusted",
    "TRUSTED_PROXIES",
    list(network, 0, 256),
    "Proxies whose X-Forwarded-For is trusted"
  ),
  rateLimitAddress: optional(
    "rates.address",
    "RATE_LIMIT_ADDRESS",
    rate,
    "Requests that one address may make"
  ),
  rateLimitAccount: optional(
    "rates.account",
    "RATE_LIMIT_ACCOUNT",
    rate,
    "Requests that one account may make"
  ),
  logLevel: required(
    "log.level",
    "LOG_LEVEL",
    oneOf("trace", "debug", "info", "warn", "error", "none"),
    "Least severe level written"
  ),
  logFormat: required(
    "log.format",
    "LOG_FORMAT",
    oneOf("auto", "json", "text"),
    "JSON lines, or text for people"
  ),
  retrySchedule: required(
    "outgoing.retrySchedule",
    "RETRY_SCHEDULE",
    list(duration, 1, 32),
    "Wait before each attempt"
  ),
  outgoingRetention: required(
    "outgoing.retention",
    "OUTGOING_RETENTION",
    duration,
    "How long a completed notification is kept"
  ),
  outboundAllow: required(
    "outbound.allow",
    "OUTBOUND_ALLOW",
    list(network, 0, 256),
    "Non-public prefixes that may be reached"
  ),
  contentPublish: required(
    "content.publish",
    "CONTENT_PUBLISH",
    oneOf("anyone", "accounts"),
    "Who may publish content"
  ),
  contentBytesMax: required(
    "content.bytesMax",
    "CONTENT_BYTES_MAX",
    size,
    "Largest content resource"
  ),
  documentBytesMax: required("documents.bytesMax", "DOCUMENT_BYTES_MAX", size, "Largest document"),
  xmlDepthMax: required(
    "documents.xmlDepthMax",
    "XML_DEPTH_MAX",
    integer(4, 256),
    "Deepest nesting of XML elements"
  ),
  recipientsMax: required(
    "documents.recipientsMax",
    "RECIPIENTS_MAX",
    integer(1, 100_000),
    "Recipients of one notification"
  ),
  retention: required(
    "mailboxes.retention",
    "RETENTION",
    duration,
    "How long a retrieved notification is kept"
  ),
  corsOrigin: required(
    "cors.origin",
    "CORS_ORIGIN",
    corsOrigin,
    "Origin whose pages may read responses"
  ),
  activationsMax: required(
    "limits.activationsMax",
    "ACTIVATIONS_MAX",
    integer(1, 100_000_000),
    "Actors in memory"
  ),
  inboxMax: required(
    "limits.inboxMax",
    "INBOX_MAX",
    integer(1, 10_000_000),
    "Messages without a reply of one actor"
  ),
  idleTimeout: required(
    "limits.idleTimeout",
    "IDLE_TIMEOUT",
    positiveDuration,
    "An actor is passivated after this time without a message"
  ),
  drainTimeout: required(
    "limits.drainTimeout",
    "DRAIN_TIMEOUT",
    positiveDuration,
    "How long a stopping node waits for work in progress"
  ),
  natsUrl: optional(
    "nats.url",
    "NATS_URL",
    list(natsServer, 1, 64),
    "Servers of NATS; unset: the embedded store"
  ),
  natsUser: optional("nats.user", "NATS_USER", text, "User at NATS"),
  natsPassword: optionalSecret("nats.password", "NATS_PASSWORD", "Password at NATS"),
  natsToken: optionalSecret("nats.token", "NATS_TOKEN", "Token for NATS"),
  natsNkeySeed: optionalSecret("nats.nkeySeed", "NATS_NKEY_SEED", "Seed of an nkey for NATS"),
  natsCreds: optional("nats.creds", "NATS_CREDS", text, "File of credentials for NATS"),
  natsCa: optional("nats.ca", "NATS_CA", text, "File of the authority of NATS's certificates"),
  natsCert: optional("nats.cert", "NATS_CERT", text, "File of this node's certificate for NATS"),
  natsKey: optional("nats.key", "NATS_KEY", text, "File of that certificate's key"),
  natsReplicas: optional(
    "nats.replicas",
    "NATS_REPLICAS",
    oneNumberOf(1, 3, 5),
    "Copies of each stream"
  ),
  nodeId: optional("cluster.nodeId", "NODE_ID", nodeName, "Name of this node in its cluster"),
  clusterBuckets: required(
    "cluster.buckets",
    "CLUSTER_BUCKETS",
    integer(1, 64),
    "Streams that share the actors"
  )
}

/** Names of earlier versions, by kind; a start with one of them is refused. */
const retiredVariables: Readonly<Record<string, keyof typeof table>> = {
  STORE: "storageEngine",
  OUTGOING_KEEP: "outgoingRetention",
  RESIDENT_ACTORS: "activationsMax",
  ACTOR_QUEUE_MAX: "inboxMax"
}

const retiredKeys: Readonly<Record<string, keyof typeof table>> = {
  "store.engine": "storageEngine",
  "outgoing.keep": "outgoingRetention",
  "limits.residentActors": "activationsMax",
  "limits.actorQueueMax": "inboxMax"
}

type Value<S> = S extends Setting<infer A, infer Required> ? Required extends true ? A
  : A | undefined
  : never

/** The values of all settings: times in ms, sizes in bytes. */
export type NodeSettings = { readonly [K in keyof typeof table]: Value<(typeof table)[K]> }

/** Every setting, in the order in which `restante config` prints them. */
export const allSettings: ReadonlyArray<Setting<unknown>> = Object.values(table)

export type SettingSource =
  | "cluster.config.ts"
  | "unset"
  | `environment ${string}`
  | `flag --${string}`

/** A setting with the source of its value. `text` is the value as written, `<set>` for a secret. */
export interface ResolvedSetting {
  readonly setting: Setting<unknown>
  readonly source: SettingSource
  readonly text: string | undefined
}

/** Settings that prevent a start; `message` has a line for each problem. */
export interface InvalidSettings {
  readonly message: string
}

export interface LoadedSettings {
  readonly settings: NodeSettings
  readonly resolved: ReadonlyArray<ResolvedSetting>
}

type Texts = Readonly<Record<string, string | undefined>>

/** The values of a configuration as text, by key; what is undefined has no default. */
const configTexts = (config: object, prefix = ""): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(config).flatMap(([name, value]: [string, unknown]) => {
      const key = prefix + name
      if (Array.isArray(value)) return [[key, value.join(",")]]
      if (typeof value === "object" && value !== null) {
        return Object.entries(configTexts(value, `${key}.`))
      }
      return [[key, value === undefined ? undefined : String(value)]]
    })
  )

const resolve = (
  { flag, key, variable }: Setting<unknown>,
  { config, environment, flags }: Record<"config" | "environment" | "flags", Texts>
): readonly [SettingSource, string | undefined] => {
  const flagText = flag === undefined ? undefined : flags[flag]
  if (flagText !== undefined) return [`flag --${flag}`, flagText]
  const variableText = environment[variable]?.trim()
  if (variableText !== undefined && variableText !== "") {
    return [`environment ${variable}`, variableText]
  }
  return config[key] === undefined ? ["unset", undefined] : ["cluster.config.ts", config[key]]
}

const invalid = ({ key, kind }: Setting<unknown>, source: SettingSource, value: string): string => {
  const shown = kind === secret ? "<set>" : JSON.stringify(value)
  return `${key} is ${shown} (from ${source}); expected ${kind.expected}`
}

/** Names that no setting has: a misspelled or retired name must not be ignored silently. */
const unknownNames = (config: Texts, environment: Texts): ReadonlyArray<string> => {
  const keys = new Set<string>(allSettings.map(({ key }) => key))
  return [
    ...Object.keys(config).filter((key) => !keys.has(key)).map((key) => {
      const replacement = retiredKeys[key]
      const advice = replacement === undefined
        ? "remove it, or see `restante config` for the keys that exist"
        : `use ${table[replacement].key} instead`
      return `cluster.config.ts has the key ${key}, which is not a setting: ${advice}`
    }),
    ...Object.entries(retiredVariables).flatMap(([variable, replacement]) =>
      (environment[variable]?.trim() ?? "") === "" ? [] : [
        `the environment has ${variable}, which is no longer a setting: ` +
        `set ${table[replacement].variable} instead`
      ]
    )
  ]
}

/** The flag that replaces one of an earlier version; undefined for any other. */
export const replacementOfFlag = (flag: string): string | undefined => {
  const retired = Object.entries(retiredVariables).find(([variable]) =>
    variable.toLowerCase().replaceAll("_", "-") === flag
  )
  return retired === undefined ? undefined : table[retired[1]].flag
}

interface AuthValues {
  readonly authJwks?: unknown
  readonly authIssuer?: unknown
  readonly authAudience?: unknown
  readonly authClockTolerance?: unknown
}

/** Problems of the issuer's settings in combination. */
const authProblems = (values: AuthValues): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const expectSet = (value: unknown, key: string, variable: string, reason: string): void => {
    if (value === undefined) problems.push(`${key} is not set (${variable}); ${reason}`)
  }
  const { authAudience, authClockTolerance, authIssuer, authJwks } = values
  if (authJwks !== undefined || authIssuer !== undefined || authAudience !== undefined) {
    const reason = "auth.issuer and auth.audience together say which tokens are accepted"
    expectSet(authIssuer, "auth.issuer", "AUTH_ISSUER", reason)
    expectSet(authAudience, "auth.audience", "AUTH_AUDIENCE", reason)
  }
  if (typeof authIssuer === "string" && metadataUrl(authIssuer) === undefined) {
    const reason = "auth.issuer is not a URL, so its keys cannot be discovered"
    expectSet(authJwks, "auth.jwks", "AUTH_JWKS", reason)
  }
  if (typeof authClockTolerance === "number" && authClockTolerance > clockToleranceMaxMs) {
    problems.push("auth.clockTolerance is more than 5m; expired tokens would stay valid too long")
  }
  return problems
}

/**
 * Reads every setting, and fails with all problems at once. `environment` is by variable, where an
 * empty one counts as unset; `flags` by name without dashes.
 */
export const loadSettings = (
  environment: Texts,
  flags: Texts = {},
  config: object = clusterConfig
): Result.Result<LoadedSettings, InvalidSettings> => {
  const values: Record<string, unknown> = {}
  const resolved: Array<ResolvedSetting> = []
  const sources = { config: configTexts(config), environment, flags }
  const problems = [...unknownNames(sources.config, environment)]
  for (const [name, setting] of Object.entries<Setting<unknown>>(table)) {
    const [source, value] = resolve(setting, sources)
    if (value === undefined) {
      resolved.push({ setting, source, text: undefined })
      continue
    }
    const decoded = Schema.decodeUnknownResult(setting.kind.schema)(value)
    if (Result.isFailure(decoded)) problems.push(invalid(setting, source, value))
    else values[name] = decoded.success
    resolved.push({ setting, source, text: setting.kind === secret ? "<set>" : value })
  }
  problems.push(...authProblems(values))
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  // The loop above has decoded each name of the table by its own schema.
  return Result.succeed({ settings: values as NodeSettings, resolved })
}

/** The origin of every URI. `port` is the port in use, as `PORT` may be 0. */
export const baseUrlOf = (settings: NodeSettings, port: number): string =>
  settings.baseUrl ?? `http://localhost:${port}`

/** The admin token, where one is set. */
export const adminTokenOf = (settings: NodeSettings): string | undefined =>
  settings.adminToken === undefined ? undefined : Redacted.value(settings.adminToken)

/** Where the node stores everything, for people. */
export const storageLocation = ({ dataDir, natsUrl }: NodeSettings): string =>
  natsUrl === undefined ? dataDir : `NATS at ${natsUrl.join(", ")}`
