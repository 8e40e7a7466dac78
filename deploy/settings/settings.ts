/**
 * Every setting of a node, and where its value comes from: a flag overrides an environment
 * variable, which overrides cluster.config.ts.
 */
import { Redacted, Result } from "effect"
import { type ClusterConfig, clusterConfig } from "../../cluster.config.ts"
import { clockToleranceMaxMs, metadataUrl } from "../../http/index.ts"
import { algorithm, claim, corsOrigin, duration, integer, keySet, list, natsServer, network,
  nodeName, oneOf, origin, positiveDuration, rate, secret, size, text,
  type ValueKind } from "./values.ts"

type Keys<Config> = {
  readonly [K in keyof Config & string]: Config[K] extends ReadonlyArray<unknown> | undefined ? K
    : Config[K] extends object ? `${K}.${Keys<Config[K]>}`
    : K
}[keyof Config & string]

/** The kind of a setting that may have no value. */
const optional = <A>(kind: ValueKind<A>): ValueKind<A | undefined> => kind

type Row = readonly [key: Keys<ClusterConfig>, kind: ValueKind<unknown>, description: string]

/**
 * The settings in the order in which `restante config` prints them, each by the name of its value.
 * Its variable and flag are made of the name: `nodeId` is NODE_ID and `--node-id`.
 */
const table = {
  host: ["host", text, "Address to listen on"],
  port: ["port", integer(0, 65_535), "TCP port, 0 for any"],
  baseUrl: ["baseUrl", optional(origin), "Origin of every URI of the service"],
  dataDir: ["dataDir", text, "Folder of the store"],
  storageEngine: [
    "storage.engine",
    optional(oneOf("rocksdb", "leveldb")),
    "Database of the folder"
  ],
  adminToken: ["adminToken", optional(secret), "Token of account admin"],
  authJwks: ["auth.jwks", optional(keySet), "Keys of the issuer of Bearer JWTs"],
  authIssuer: ["auth.issuer", optional(text), "iss of its tokens"],
  authAudience: ["auth.audience", optional(list(text, 1, 64)), "aud of tokens for this service"],
  authAccountClaim: ["auth.accountClaim", claim, "Claim with the account's name"],
  authRolesClaim: ["auth.rolesClaim", claim, "Claim with its roles"],
  authRolesPrefix: ["auth.rolesPrefix", optional(text), "Prefix of the issuer's role names"],
  authClockTolerance: ["auth.clockTolerance", duration, "Largest offset of the issuer's clock"],
  authAlgorithms: ["auth.algorithms", list(algorithm, 1), "Algorithms of its signatures"],
  authCa: ["auth.ca", optional(text), "File of the authority of its key server"],
  trustedProxies: [
    "proxies.trusted",
    list(network, 0, 256),
    "Proxies whose X-Forwarded-For is trusted"
  ],
  rateLimitAddress: ["rates.address", optional(rate), "Requests that one address may make"],
  rateLimitAccount: ["rates.account", optional(rate), "Requests that one account may make"],
  logLevel: [
    "log.level",
    oneOf("trace", "debug", "info", "warn", "error", "none"),
    "Least severe level written"
  ],
  logFormat: ["log.format", oneOf("auto", "json", "text"), "JSON lines, or text for people"],
  retrySchedule: ["outgoing.retrySchedule", list(duration, 1, 32), "Wait before each attempt"],
  outgoingRetention: ["outgoing.retention", duration, "How long a completed notification is kept"],
  outboundAllow: [
    "outbound.allow",
    list(network, 0, 256),
    "Non-public prefixes that may be reached"
  ],
  contentPublish: ["content.publish", oneOf("anyone", "accounts"), "Who may publish content"],
  contentBytesMax: ["content.bytesMax", size, "Largest content resource"],
  documentBytesMax: ["documents.bytesMax", size, "Largest document"],
  xmlDepthMax: ["documents.xmlDepthMax", integer(4, 256), "Deepest nesting of XML elements"],
  recipientsMax: ["documents.recipientsMax", integer(1, 100_000), "Recipients of one notification"],
  retention: ["mailboxes.retention", duration, "How long a retrieved notification is kept"],
  sessionRetention: [
    "sessions.retention",
    positiveDuration,
    "How long a session is kept after its last change"
  ],
  corsOrigin: ["cors.origin", corsOrigin, "Origin whose pages may read responses"],
  activationsMax: ["limits.activationsMax", integer(1, 100_000_000), "Actors in memory"],
  inboxMax: ["limits.inboxMax", integer(1, 10_000_000), "Messages without a reply of one actor"],
  idleTimeout: [
    "limits.idleTimeout",
    positiveDuration,
    "An actor is passivated after this time without a message"
  ],
  drainTimeout: [
    "limits.drainTimeout",
    positiveDuration,
    "How long a stopping node waits for work in progress"
  ],
  natsUrl: [
    "nats.url",
    optional(list(natsServer, 1, 64)),
    "Servers of NATS; unset: the embedded store"
  ],
  natsUser: ["nats.user", optional(text), "User at NATS"],
  natsPassword: ["nats.password", optional(secret), "Password at NATS"],
  natsToken: ["nats.token", optional(secret), "Token for NATS"],
  natsNkeySeed: ["nats.nkeySeed", optional(secret), "Seed of an nkey for NATS"],
  natsCreds: ["nats.creds", optional(text), "File of credentials for NATS"],
  natsCa: ["nats.ca", optional(text), "File of the authority of NATS's certificates"],
  natsCert: ["nats.cert", optional(text), "File of this node's certificate for NATS"],
  natsKey: ["nats.key", optional(text), "File of that certificate's key"],
  natsReplicas: ["nats.replicas", optional(oneOf(1, 3, 5)), "Copies of each stream"],
  nodeId: ["cluster.nodeId", optional(nodeName), "Name of this node in its cluster"],
  clusterBuckets: ["cluster.buckets", integer(1, 64), "Streams that share the actors"]
} satisfies Record<string, Row>

/** The values of all settings: times in ms, sizes in bytes. */
export type NodeSettings = {
  readonly [Name in keyof typeof table]: (typeof table)[Name][1] extends ValueKind<infer A> ? A
    : never
}

/** One setting. */
export interface Setting {
  readonly name: string
  /** In cluster.config.ts. */
  readonly key: string
  readonly kind: ValueKind<unknown>
  readonly description: string
  /** In the environment. */
  readonly variable: string
  /** Without the dashes. A secret has none, since every user of the machine can see flags. */
  readonly flag: string | undefined
}

const isSecret = (kind: ValueKind<unknown>): boolean => kind === secret

const flagOf = (variable: string): string => variable.toLowerCase().replaceAll("_", "-")

/** Every setting, in the order in which `restante config` prints them. */
export const allSettings: ReadonlyArray<Setting> = Object.entries<Row>(table).map(
  ([name, [key, kind, description]]) => {
    const variable = name.replace(/[A-Z]/g, "_$&").toUpperCase()
    const flag = isSecret(kind) ? undefined : flagOf(variable)
    return { name, key, kind, description, variable, flag }
  }
)

/** Names of earlier versions; a start with one of them is refused. */
const retired: ReadonlyArray<
  { readonly variable: string; readonly key: string; readonly replacement: keyof typeof table }
> = [
  { variable: "STORE", key: "store.engine", replacement: "storageEngine" },
  { variable: "OUTGOING_KEEP", key: "outgoing.keep", replacement: "outgoingRetention" },
  { variable: "RESIDENT_ACTORS", key: "limits.residentActors", replacement: "activationsMax" },
  { variable: "ACTOR_QUEUE_MAX", key: "limits.actorQueueMax", replacement: "inboxMax" }
]

const replacementOf = (retiredName: (typeof retired)[number] | undefined): Setting | undefined =>
  allSettings.find(({ name }) => name === retiredName?.replacement)

export type SettingSource =
  | "cluster.config.ts"
  | "unset"
  | `environment ${string}`
  | `flag --${string}`

/** A setting with the source of its value. `text` is the value as written, `<set>` for a secret. */
export interface ResolvedSetting {
  readonly setting: Setting
  readonly source: SettingSource
  readonly text: string | undefined
}

export interface LoadedSettings {
  readonly settings: NodeSettings
  readonly resolved: ReadonlyArray<ResolvedSetting>
}

type Texts = Readonly<Record<string, string | undefined>>

/** The values of a configuration as text, by key; undefined without a default. */
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

/** The text of an environment variable; an empty one counts as unset. */
const setText = (text: string | undefined): string | undefined => text?.trim() || undefined

const resolve = (
  { flag, key, variable }: Setting,
  { config, environment, flags }: Record<"config" | "environment" | "flags", Texts>
): readonly [SettingSource, string | undefined] => {
  const flagText = flag === undefined ? undefined : flags[flag]
  if (flagText !== undefined) return [`flag --${flag}`, flagText]
  const variableText = setText(environment[variable])
  if (variableText !== undefined) return [`environment ${variable}`, variableText]
  return config[key] === undefined ? ["unset", undefined] : ["cluster.config.ts", config[key]]
}

const invalid = ({ key, kind }: Setting, source: SettingSource, value: string): string => {
  const printed = isSecret(kind) ? "<set>" : JSON.stringify(value)
  return `${key} is ${printed} (from ${source}); expected ${kind.expected}`
}

/** Names that no setting has: a misspelled or retired name must not be ignored silently. */
const unknownNames = (config: Texts, environment: Texts): ReadonlyArray<string> => {
  const keys = new Set<string>(allSettings.map(({ key }) => key))
  const unknownKeys = Object.keys(config).filter((key) => !keys.has(key)).map((key) => {
    const replacement = replacementOf(retired.find((one) => one.key === key))
    const advice = replacement === undefined
      ? "remove it, or see `restante config` for the keys that exist"
      : `use ${replacement.key} instead`
    return `cluster.config.ts has the key ${key}, which is not a setting: ${advice}`
  })
  const retiredVariables = retired.filter(({ variable }) => setText(environment[variable])).map(
    (one) =>
      `the environment has ${one.variable}, which is no longer a setting: ` +
      `set ${replacementOf(one)?.variable} instead`
  )
  return [...unknownKeys, ...retiredVariables]
}

/** The flag that replaces one of an earlier version; undefined for any other. */
export const replacementOfFlag = (flag: string): string | undefined =>
  replacementOf(retired.find(({ variable }) => flagOf(variable) === flag))?.flag

/** Problems of the issuer's settings in combination. */
const authProblems = (
  { authAudience, authClockTolerance = 0, authIssuer, authJwks }: Partial<NodeSettings>
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const isUsed = (authJwks ?? authIssuer ?? authAudience) !== undefined
  const reason = "auth.issuer and auth.audience together determine which tokens are accepted"
  if (isUsed && authIssuer === undefined) {
    problems.push(`auth.issuer is not set (AUTH_ISSUER); ${reason}`)
  }
  if (isUsed && authAudience === undefined) {
    problems.push(`auth.audience is not set (AUTH_AUDIENCE); ${reason}`)
  }
  if (authIssuer && authJwks === undefined && metadataUrl(authIssuer) === undefined) {
    problems.push(
      "auth.jwks is not set (AUTH_JWKS); auth.issuer is not a URL, so its keys cannot be discovered"
    )
  }
  if (authClockTolerance > clockToleranceMaxMs) {
    problems.push("auth.clockTolerance is more than 5m; expired tokens would stay valid too long")
  }
  return problems
}

/**
 * Reads every setting, and fails with a line for each problem. `environment` is by variable,
 * `flags` by name without dashes.
 */
export const loadSettings = (
  environment: Texts,
  flags: Texts = {},
  config: object = clusterConfig
): Result.Result<LoadedSettings, { readonly message: string }> => {
  const values: Record<string, unknown> = {}
  const resolved: Array<ResolvedSetting> = []
  const sources = { config: configTexts(config), environment, flags }
  const problems = [...unknownNames(sources.config, environment)]
  for (const setting of allSettings) {
    const { kind, name } = setting
    const [source, text] = resolve(setting, sources)
    const value = text === undefined ? undefined : kind.parse(text)
    if (text !== undefined && value === undefined) problems.push(invalid(setting, source, text))
    values[name] = value
    resolved.push({ setting, source, text: text && (isSecret(kind) ? "<set>" : text) })
  }
  // The loop above has parsed each name of the table by its own kind.
  const settings = values as NodeSettings
  problems.push(...authProblems(settings))
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  return Result.succeed({ settings, resolved })
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
