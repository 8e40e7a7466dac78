/**
 * Every setting of a node, and where its value comes from: a flag overrides an environment
 * variable, which overrides cluster.config.ts.
 */
import { Redacted, Result } from "effect"
import { isIPv4 } from "node:net"
import { type ClusterConfig, clusterConfig } from "../../cluster.config.ts"
import { parseUrl } from "../../actors/index.ts"
import { clockToleranceMaxMs, metadataUrl } from "../../http/index.ts"
import { adminTokenCharsMin } from "../limits.ts"
import { algorithm, attributes, claim, collector, contact, corsOrigin, duration, freeSpace,
  headerFields, integer, keySet, list, listenAddress, natsServer, network, nodeName, oneOf, origin,
  positiveDuration, rate, ratio, secret, size, text, type ValueKind } from "./values.ts"

type Keys<Config> = {
  readonly [K in keyof Config & string]: Config[K] extends ReadonlyArray<unknown> | undefined ? K
    : Config[K] extends object ? `${K}.${Keys<Config[K]>}`
    : K
}[keyof Config & string]

/** The kind of a setting that may have no value. */
const optional = <A>(kind: ValueKind<A>): ValueKind<A | undefined> => kind

type Row = readonly [key: Keys<ClusterConfig>, kind: ValueKind<unknown>, description: string]

/**
 * The settings in the order in which `restante config` prints them. A row has the key in
 * cluster.config.ts, the kind of the value, and the text that `--help` prints. The property's name
 * gives the variable and the flag: `nodeId` is NODE_ID and `--node-id`.
 */
const table = {
  host: ["host", text, "Address on which the node listens"],
  port: ["port", integer(0, 65_535), "TCP port on which the node listens; 0: any free port"],
  baseUrl: ["baseUrl", optional(origin), "Origin of every URI of the service"],
  dataDir: ["dataDir", text, "Folder in which the node stores its data"],
  storageEngine: [
    "storage.engine",
    optional(oneOf("rocksdb", "leveldb")),
    "Database of the embedded store"
  ],
  secretKeyFile: [
    "secrets.keyFile",
    optional(text),
    "File of the key that encrypts stored secrets; unset: secret-key in the data folder"
  ],
  adminToken: ["adminToken", optional(secret), "Token of the account admin"],
  authJwks: [
    "auth.jwks",
    optional(keySet),
    "Public keys of the external issuer of Bearer tokens: a URL, a file, or a JWK Set"
  ],
  authIssuer: ["auth.issuer", optional(text), "Required iss claim of the issuer's tokens"],
  authAudience: [
    "auth.audience",
    optional(list(text, 1, 64)),
    "The aud claim of the issuer's tokens must contain one of these"
  ],
  authAccountClaim: ["auth.accountClaim", claim, "Claim of a token that names the account"],
  authRolesClaim: ["auth.rolesClaim", claim, "Claim of a token that names its roles"],
  authRolesPrefix: ["auth.rolesPrefix", optional(text), "Prefix of the issuer's role names"],
  authTokenType: [
    "auth.tokenType",
    oneOf("any", "at+jwt"),
    "Type that the header of a token must have"
  ],
  authScope: [
    "auth.scope",
    oneOf("optional", "required"),
    "Whether a token needs a scope for this service"
  ],
  authClockTolerance: [
    "auth.clockTolerance",
    duration,
    "How far the issuer's clock may differ from the node's"
  ],
  authAlgorithms: [
    "auth.algorithms",
    list(algorithm, 1),
    "Signature algorithms that tokens may use"
  ],
  authCa: [
    "auth.ca",
    optional(text),
    "PEM file of the CA that issued the key server's certificate"
  ],
  trustedProxies: [
    "proxies.trusted",
    list(network, 0, 256),
    "Proxies whose X-Forwarded-For is trusted"
  ],
  rateLimitAddress: ["rates.address", rate, "Requests that the clients of one network may make"],
  rateLimitAccount: ["rates.account", rate, "Requests that one account may make"],
  logLevel: [
    "log.level",
    oneOf("trace", "debug", "info", "warn", "error", "none"),
    "Least severe level that the node logs"
  ],
  logFormat: ["log.format", oneOf("auto", "json", "text"), "Format of the log"],
  retrySchedule: [
    "outgoing.retrySchedule",
    list(duration, 1, 32),
    "How long to wait before each attempt of a delivery"
  ],
  outgoingRetention: [
    "outgoing.retention",
    duration,
    "How long the service keeps a sent notification after its last attempt"
  ],
  outboundAllow: [
    "outbound.allow",
    list(network, 0, 256),
    "Address prefixes that outgoing requests may reach although they are not public"
  ],
  fanoutAllow: [
    "outgoing.fanoutAllow",
    list(origin, 0, 256),
    "Foreign origins at which one notification may have more than 100 recipients"
  ],
  contentBaseUrl: [
    "content.baseUrl",
    optional(origin),
    "Origin of the URIs of content, on another host name than the service"
  ],
  contentPublish: ["content.publish", oneOf("anyone", "accounts"), "Who may publish content"],
  contentBytesMax: ["content.bytesMax", size, "Largest content that a client may publish"],
  anonymousRetention: [
    "content.anonymousRetention",
    positiveDuration,
    "How long the service keeps content of clients without an account after its last read"
  ],
  anonymousBytesMax: [
    "quotas.anonymousBytesMax",
    size,
    "Bytes of all content of clients without an account"
  ],
  anonymousNetworkBytesMax: [
    "quotas.anonymousNetworkBytesMax",
    size,
    "Bytes of content that such clients of one network may publish in a day"
  ],
  accountBytesMax: ["quotas.accountBytesMax", size, "Bytes of the content of one account"],
  mailboxAnonymousBytesMax: [
    "quotas.mailboxAnonymousBytesMax",
    size,
    "Bytes of unread notifications of clients without an account in one mailbox, with their content"
  ],
  diskFreeMin: [
    "disk.freeMin",
    freeSpace,
    "Free space of the disk below which nothing is stored without an account"
  ],
  documentBytesMax: [
    "documents.bytesMax",
    size,
    "Largest XML or JSON document that the service accepts"
  ],
  xmlDepthMax: [
    "documents.xmlDepthMax",
    integer(4, 256),
    "How deep the elements of an XML document may nest"
  ],
  recipientsMax: [
    "documents.recipientsMax",
    integer(1, 100_000),
    "Largest number of recipients of one notification"
  ],
  retention: [
    "mailboxes.retention",
    duration,
    "How long a mailbox keeps a retrieved notification, unless its owner chose otherwise"
  ],
  sessionRetention: [
    "sessions.retention",
    positiveDuration,
    "How long the service keeps a session after its last change"
  ],
  auditRetention: [
    "audit.retention",
    positiveDuration,
    "How long the audit log keeps an entry"
  ],
  sessionReferences: [
    "sessions.references",
    oneOf("on", "off"),
    "Whether the answer of a session may be a reference (href) that the service reads"
  ],
  securityContact: [
    "security.contact",
    optional(contact),
    "Contact for those who find a weakness, in /.well-known/security.txt"
  ],
  metricsListen: [
    "metrics.listen",
    optional(listenAddress),
    "Address of a listener that serves /metrics alone, without an account"
  ],
  inspector: [
    "inspector",
    oneOf("on", "off"),
    "Whether the node records its last messages and commits, for the inspector of admins"
  ],
  otelExporterOtlpEndpoint: [
    "otel.endpoint",
    optional(collector),
    "OpenTelemetry collector that gets traces and metrics; unset: none are exported"
  ],
  otelExporterOtlpHeaders: [
    "otel.headers",
    optional(headerFields),
    "Header fields of the requests to the collector, such as its credentials"
  ],
  otelExporterOtlpProtocol: [
    "otel.protocol",
    oneOf("http/protobuf", "http/json"),
    "Form of what the collector gets"
  ],
  otelServiceName: ["otel.serviceName", optional(text), "Name of the service at the collector"],
  otelResourceAttributes: [
    "otel.resourceAttributes",
    optional(attributes),
    "Attributes of this node at the collector"
  ],
  otelTracesExporter: [
    "otel.tracesExporter",
    oneOf("otlp", "none"),
    "Whether the collector gets traces"
  ],
  otelMetricsExporter: [
    "otel.metricsExporter",
    oneOf("otlp", "none"),
    "Whether the collector gets metrics"
  ],
  otelTracesSampler: [
    "otel.tracesSampler",
    oneOf(
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio"
    ),
    "Which traces the collector gets"
  ],
  otelTracesSamplerArg: [
    "otel.tracesSamplerArg",
    ratio,
    "Share of the traces that a sampler with traceidratio selects"
  ],
  otelMetricExportInterval: [
    "otel.metricExportInterval",
    integer(1_000, 86_400_000),
    "Interval at which the collector gets metrics, in ms"
  ],
  corsOrigin: [
    "cors.origin",
    corsOrigin,
    "Origin whose web pages may read and change resources (CORS)"
  ],
  activationsMax: [
    "limits.activationsMax",
    integer(1, 100_000_000),
    "Largest number of actors in memory"
  ],
  inboxMax: [
    "limits.inboxMax",
    integer(1, 10_000_000),
    "Largest number of messages that one actor has not yet answered"
  ],
  idleTimeout: [
    "limits.idleTimeout",
    positiveDuration,
    "The node passivates an actor that receives no message for this time"
  ],
  drainTimeout: [
    "limits.drainTimeout",
    positiveDuration,
    "How long a stopping node waits for work in progress"
  ],
  natsUrl: [
    "nats.url",
    optional(list(natsServer, 1, 64)),
    "NATS servers of the cluster; unset: the node uses the embedded store"
  ],
  natsUser: ["nats.user", optional(text), "User name at NATS"],
  natsPassword: ["nats.password", optional(secret), "Password of the user at NATS"],
  natsToken: ["nats.token", optional(secret), "Token that authenticates the node to NATS"],
  natsNkeySeed: [
    "nats.nkeySeed",
    optional(secret),
    "Seed of the NKey that authenticates the node to NATS"
  ],
  natsCreds: ["nats.creds", optional(text), "Credentials file that authenticates the node to NATS"],
  natsCa: [
    "nats.ca",
    optional(text),
    "PEM file of the CA that issued the NATS servers' certificates"
  ],
  natsCert: [
    "nats.cert",
    optional(text),
    "PEM file of the certificate that the node presents to NATS"
  ],
  natsKey: ["nats.key", optional(text), "PEM file of the key of the node's certificate"],
  natsInsecure: [
    "nats.insecure",
    oneOf(0, 1),
    "1: NATS servers elsewhere may be without TLS or credentials"
  ],
  natsReplicas: ["nats.replicas", optional(oneOf(1, 3, 5)), "Replicas of each NATS stream"],
  nodeId: ["cluster.nodeId", optional(nodeName), "Name of this node in its cluster"],
  clusterBuckets: [
    "cluster.buckets",
    integer(1, 64),
    "Number of NATS streams over which the actors are spread"
  ]
} satisfies Record<string, Row>

/** The values of all settings: times in ms, sizes in bytes. */
export type NodeSettings = {
  readonly [Name in keyof typeof table]: (typeof table)[Name][1] extends ValueKind<infer A> ? A
    : never
}

/** One setting. */
export interface Setting {
  readonly name: string
  /** The path of the value in cluster.config.ts, with dots. */
  readonly key: string
  readonly kind: ValueKind<unknown>
  readonly description: string
  /** The name of the environment variable. */
  readonly variable: string
  /** The flag without its dashes. A secret has no flag, since all users of a machine see flags. */
  readonly flag: string | undefined
}

const isSecret = (kind: ValueKind<unknown>): boolean => kind === secret || kind === headerFields

const flagOf = (variable: string): string => variable.toLowerCase().replaceAll("_", "-")

/** Every setting, in the order in which `restante config` prints them. */
export const allSettings: ReadonlyArray<Setting> = Object.entries<Row>(table).map(
  ([name, [key, kind, description]]) => {
    const variable = name.replace(/[A-Z]/g, "_$&").toUpperCase()
    const flag = isSecret(kind) ? undefined : flagOf(variable)
    return { name, key, kind, description, variable, flag }
  }
)

/** Settings of earlier versions. The node does not start with one of them. */
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
  | "port"
  | `environment ${string}`
  | `flag --${string}`

/**
 * A setting with the source of its value. `text` is the value as written, `<set>` for a secret. The
 * source is `port` for a base URL that follows from it.
 */
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

/** The values of a configuration as text, by key. A value is undefined if it has no default. */
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

/** The trimmed text of an environment variable; undefined if it is empty, which counts as unset. */
const nonEmptyText = (text: string | undefined): string | undefined => text?.trim() || undefined

const resolve = (
  { flag, key, variable }: Setting,
  { config, environment, flags }: Record<"config" | "environment" | "flags", Texts>
): readonly [SettingSource, string | undefined] => {
  const flagText = flag === undefined ? undefined : flags[flag]
  if (flagText !== undefined) return [`flag --${flag}`, flagText]
  const variableText = nonEmptyText(environment[variable])
  if (variableText !== undefined) return [`environment ${variable}`, variableText]
  return config[key] === undefined ? ["unset", undefined] : ["cluster.config.ts", config[key]]
}

const invalid = ({ key, kind }: Setting, source: SettingSource, value: string): string => {
  const printed = isSecret(kind) ? "<set>" : JSON.stringify(value)
  return `${key} is ${printed} (from ${source}); expected ${kind.expected}`
}

/** A problem for each unknown or retired name, so that the node never ignores one silently. */
const nameProblems = (config: Texts, environment: Texts): ReadonlyArray<string> => {
  const keys = new Set<string>(allSettings.map(({ key }) => key))
  const keyProblems = Object.keys(config).filter((key) => !keys.has(key)).map((key) => {
    const replacement = replacementOf(retired.find((one) => one.key === key))
    const advice = replacement === undefined
      ? "remove it, or see `restante config` for the keys that exist"
      : `use ${replacement.key} instead`
    return `cluster.config.ts has the key ${key}, which is not a setting: ${advice}`
  })
  const retiredVariables = retired.filter(({ variable }) => nonEmptyText(environment[variable]))
  const variableProblems = retiredVariables.map(
    (one) =>
      `the environment has ${one.variable}, which is no longer a setting: ` +
      `set ${replacementOf(one)?.variable} instead`
  )
  return [...keyProblems, ...variableProblems]
}

/** The flag that replaces a flag of an earlier version; undefined for any other flag. */
export const replacementOfFlag = (flag: string): string | undefined =>
  replacementOf(retired.find(({ variable }) => flagOf(variable) === flag))?.flag

/** Problems of the settings of the external issuer that only their combination shows. */
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

/** The host name of a URL, without the dot that a full name may end with. */
const hostNameOf = ({ hostname }: URL): string => hostname.replace(/\.$/, "")

/** Why content cannot have its own origin there; browsers share cookies among ports of a host. */
const contentProblems = (
  { baseUrl = "http://localhost", contentBaseUrl }: Partial<NodeSettings>
): ReadonlyArray<string> => {
  const own = parseUrl(baseUrl)
  const content = contentBaseUrl === undefined ? undefined : parseUrl(contentBaseUrl)
  if (own === undefined || content === undefined) return []
  const found = `content.baseUrl is ${contentBaseUrl} (CONTENT_BASE_URL)`
  if (hostNameOf(own) === hostNameOf(content)) {
    return [
      `${found}, on the host of the service's own URIs (BASE_URL), to which browsers send the ` +
      "same cookies: use another host name, preferably of another domain"
    ]
  }
  if (content.hostname.endsWith(".")) {
    return [
      `${found}, whose host name ends with a dot, which certificates and proxies ` +
      "leave out: remove the dot"
    ]
  }
  return own.protocol === "https:" && content.protocol === "http:"
    ? [
      `${found}, without TLS, while BASE_URL has it: passwords of messages could be read on the ` +
      "way; use https://"
    ]
    : []
}

/**
 * Reads every setting, and fails with a line for each problem. The keys of `environment` are
 * variables, those of `flags` are flags without dashes.
 */
export const loadSettings = (
  environment: Texts,
  flags: Texts = {},
  config: object = clusterConfig
): Result.Result<LoadedSettings, { readonly message: string }> => {
  const values: Record<string, unknown> = {}
  const resolved: Array<ResolvedSetting> = []
  const sources = { config: configTexts(config), environment, flags }
  const problems = [...nameProblems(sources.config, environment)]
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
  problems.push(...authProblems(settings), ...contentProblems(settings))
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  return Result.succeed({ settings, resolved })
}

/** The origin of every URI of the service. `port` is the port in use, since `PORT` may be 0. */
export const baseUrlOf = (settings: NodeSettings, port: number): string =>
  settings.baseUrl ?? `http://localhost:${port}`

/** The resolved settings of a node on `port`, with the base URL that follows from it. */
export const resolvedOn = (
  { resolved, settings }: LoadedSettings,
  port: number
): ReadonlyArray<ResolvedSetting> =>
  resolved.map((one) =>
    one.setting.key === "baseUrl" && one.text === undefined && port !== 0
      ? { ...one, source: "port", text: baseUrlOf(settings, port) }
      : one
  )

/** Whether the value must not be shown. */
export const isSecretSetting = ({ kind }: Setting): boolean => isSecret(kind)

/**
 * The settings with other values, by variable, such as those that a running node has; undefined for
 * none. A value that this version does not know stays what it was.
 */
export const settingsWith = (settings: NodeSettings, values: Texts): NodeSettings => {
  const changed = allSettings.flatMap(({ kind, name, variable }) => {
    if (isSecret(kind) || !Object.hasOwn(values, variable)) return []
    const text = values[variable]
    const value = text === undefined ? undefined : kind.parse(text)
    return text !== undefined && value === undefined ? [] : [[name, value] as const]
  })
  return { ...settings, ...Object.fromEntries(changed) }
}

/** The token of the account admin; undefined without that setting. */
export const adminTokenOf = (settings: NodeSettings): string | undefined =>
  settings.adminToken === undefined ? undefined : Redacted.value(settings.adminToken)

/** Why no node starts with this token of the account admin; undefined if one does. */
export const adminTokenProblem = (settings: NodeSettings): string | undefined => {
  const { length } = adminTokenOf(settings) ?? ""
  return length === 0 || length >= adminTokenCharsMin
    ? undefined
    : `ADMIN_TOKEN has ${length} characters, and could be guessed: set one of at least ` +
      `${adminTokenCharsMin}, such as by \`openssl rand -base64 32\``
}

/**
 * Whether a server is certainly on this machine. Other names that resolve to it do not count: a
 * name server could resolve them otherwise tomorrow.
 */
export const isLoopback = (server: string): boolean => {
  const { hostname = "" } = parseUrl(server) ?? {}
  return hostname === "localhost" || hostname === "[::1]" ||
    (isIPv4(hostname) && hostname.startsWith("127."))
}

/** Whether the address of a server requires TLS. */
export const isTls = (server: string): boolean => server.startsWith("tls://")

/** What the connection to NATS servers elsewhere lacks; undefined for servers on this machine. */
export const natsWeakness = (settings: NodeSettings): string | undefined => {
  const elsewhere = (settings.natsUrl ?? []).filter((server) => !isLoopback(server))
  if (elsewhere.length === 0) return undefined
  const { natsCert, natsCreds, natsNkeySeed, natsPassword, natsToken } = settings
  const credentials = [natsCert, natsCreds, natsNkeySeed, natsPassword, natsToken]
  const lacks = [
    ...elsewhere.every(isTls) ? [] : ["TLS"],
    ...credentials.some((one) => one !== undefined) ? [] : ["credentials"]
  ]
  return lacks.length === 0 ? undefined : `NATS at ${elsewhere.join(", ")} is without ` +
    lacks.join(" and without ")
}

/**
 * Whether the node may make its own key of stored secrets: it is alone, or all servers of NATS are
 * on this machine, which is for development.
 */
export const mayMakeSecretKey = ({ natsUrl }: Pick<NodeSettings, "natsUrl">): boolean =>
  natsUrl === undefined || natsUrl.every(isLoopback)

/** Why no node connects so to NATS; undefined if one does. */
export const natsProblem = (settings: NodeSettings): string | undefined => {
  const weakness = natsWeakness(settings)
  return weakness === undefined || settings.natsInsecure === 1
    ? undefined
    : `${weakness}, and others on the network could read and change everything: use tls:// and ` +
      "credentials, or set NATS_INSECURE=1 for a network that nobody else reaches"
}

/** Where the node stores everything, for people. */
export const storageLocation = ({ dataDir, natsUrl }: NodeSettings): string =>
  natsUrl === undefined ? dataDir : `NATS at ${natsUrl.join(", ")}`
