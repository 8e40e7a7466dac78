/**
 * The settings of a node: what there is, and where each value comes from. A flag overrides an
 * environment variable, which overrides cluster.config.ts.
 */
import { Redacted, Result, Schema } from "effect"
import { clusterConfig } from "../cluster.config.ts"
import type { Kind } from "./values.ts"
import {
  corsOrigin,
  duration,
  integer,
  list,
  network,
  oneOf,
  origin,
  secret,
  size,
  span,
  text
} from "./values.ts"

const retryAttemptsMax = 32
const networksMax = 256

/** One setting: `Name` in cluster.config.ts, its environment variable and its flag. */
export interface Setting<A, Needed extends boolean = boolean> {
  readonly name: string
  readonly env: string
  /** Without the dashes; a secret has none, since every user of the machine can see flags. */
  readonly flag: string | undefined
  readonly about: string
  readonly needed: Needed
  readonly kind: Kind<A>
  /** As it is written in cluster.config.ts; undefined when it has no default. */
  readonly fallback: string | undefined
}

type Plain = string | number | ReadonlyArray<string> | undefined

const plainText = (value: Plain): string | undefined =>
  typeof value === "object" ? value.join(",") : value === undefined ? undefined : String(value)

const setting = <A>(
  name: string,
  env: string,
  kind: Kind<A>,
  fallback: Plain,
  about: string
): Setting<A, true> => {
  const flag = env.toLowerCase().replaceAll("_", "-")
  return { name, env, flag, about, kind, needed: true, fallback: plainText(fallback) }
}

const optional = <A>(one: Setting<A, true>): Setting<A, false> => ({ ...one, needed: false })

const { content, cors, documents, limits, log, mailboxes, outbound, outgoing } = clusterConfig

const levels = oneOf("trace", "debug", "info", "warn", "error", "none")
const adminToken = optional(
  setting("adminToken", "ADMIN_TOKEN", secret, clusterConfig.adminToken, "Token of account admin")
)

/** Every setting, by its path in cluster.config.ts. */
const table = {
  host: setting("host", "HOST", text, clusterConfig.host, "Address to listen on"),
  port: setting("port", "PORT", integer(0, 65_535), clusterConfig.port, "TCP port, 0 for any"),
  baseUrl: optional(
    setting("baseUrl", "BASE_URL", origin, clusterConfig.baseUrl, "Origin of every URI given out")
  ),
  dataDir: setting("dataDir", "DATA_DIR", text, clusterConfig.dataDir, "Folder of the store"),
  adminToken: { ...adminToken, flag: undefined },
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
  actorQueueMax: setting(
    "limits.actorQueueMax",
    "ACTOR_QUEUE_MAX",
    integer(1, 10_000_000),
    limits.actorQueueMax,
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
  )
}

type Table = typeof table
type Value<S> = S extends Setting<infer A, infer Needed> ? Needed extends true ? A : A | undefined
  : never

/** The values of all settings: times in ms, sizes in bytes. */
export type Settings = { readonly [K in keyof Table]: Value<Table[K]> }

/** Every setting in the order in which `restante config` shows them. */
export const allSettings: ReadonlyArray<Setting<unknown>> = Object.values(table)

export type Source = "cluster.config.ts" | "unset" | `environment ${string}` | `flag --${string}`

/** A setting as it was found. `text` is what was written, `<set>` for a secret. */
export interface Found {
  readonly setting: Setting<unknown>
  readonly source: Source
  readonly text: string | undefined
}

/** A value that is not one of its setting, with the message that stops the start. */
export interface WrongSetting {
  readonly message: string
}

export interface Loaded {
  readonly settings: Settings
  readonly found: ReadonlyArray<Found>
}

const written = (
  { env, fallback, flag }: Setting<unknown>,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>
): readonly [Source, string | undefined] => {
  const byFlag = flag === undefined ? undefined : flags[flag]
  if (byFlag !== undefined) return [`flag --${flag}`, byFlag]
  const byEnvironment = environment[env]?.trim()
  if (byEnvironment !== undefined && byEnvironment !== "") {
    return [`environment ${env}`, byEnvironment]
  }
  return fallback === undefined ? ["unset", undefined] : ["cluster.config.ts", fallback]
}

const wrong = (one: Setting<unknown>, source: Source, value: string): string => {
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
): Result.Result<Loaded, WrongSetting> => {
  const values: Record<string, unknown> = {}
  const found: Array<Found> = []
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
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  // The loop above has decoded each key of the table by its own schema.
  return Result.succeed({ settings: values as Settings, found })
}

/** The origin of every URI given out. `port` is the one that is listened on, as `PORT` may be 0. */
export const baseUrlOf = (settings: Settings, port: number): string =>
  settings.baseUrl ?? `http://localhost:${port}`

/** The admin token, where one is set. */
export const adminTokenOf = (settings: Settings): string | undefined =>
  settings.adminToken === undefined ? undefined : Redacted.value(settings.adminToken)
