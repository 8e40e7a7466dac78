/** Every setting of a node, in the order in which `restante config` shows them. */
import { clusterConfig } from "../cluster.config.ts"
import { authTable } from "./auth-table.ts"
import { clusterTable } from "./cluster-table.ts"
import { optional, setting, withoutFlag } from "./setting.ts"
import {
  corsOrigin,
  duration,
  integer,
  list,
  network,
  oneOf,
  origin,
  rate,
  secret,
  size,
  span,
  text
} from "./values.ts"

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
  ),
  ...clusterTable
}
