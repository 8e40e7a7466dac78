/**
 * Every setting of a node, with its default. An environment variable overrides a value here, and a
 * flag of the command line overrides both; `restante config` lists all three. Durations are written
 * as `500ms`, `5s`, `1m`, `30min`, `2h`, `7d` or in ISO 8601 (`P30D`); sizes as `256KiB`, `1GiB`.
 */
export interface ClusterConfig {
  /** Address to listen on; `0.0.0.0` is every IPv4 address, `::` every address. */
  readonly host: string
  /** TCP port to listen on; 0 takes a free one. */
  readonly port: number
  /** Origin of every URI of the service; `http://localhost:<port>` when undefined. */
  readonly baseUrl: string | undefined
  /**
   * Folder of the embedded store; a node of a cluster stores only its name there. The node creates
   * the folder if it does not exist.
   */
  readonly dataDir: string
  readonly storage: {
    /**
     * Database of the embedded store. When undefined, the node opens the database that the folder
     * has; in a new folder it creates a RocksDB where RocksDB runs, else a LevelDB.
     */
    readonly engine: "rocksdb" | "leveldb" | undefined
  }
  readonly secrets: {
    /**
     * File of the key that encrypts stored secrets, and of earlier keys, one a line. Undefined: the
     * file `secret-key` in `dataDir`, which the first start makes. A cluster needs a file, the same
     * for every node.
     */
    readonly keyFile: string | undefined
  }
  /**
   * Token of the account `admin`. When undefined, the first start with an empty store generates
   * one and prints it once. Prefer the environment variable to a value in this file.
   */
  readonly adminToken: string | undefined
  /** An external issuer (OpenID Connect, OAuth). The service accepts its JWTs as Bearer tokens. */
  readonly auth: {
    /**
     * The issuer's public keys: the URL of a JWK Set, a file, or the set itself. Undefined: the
     * node finds the URL by discovery.
     */
    readonly jwks: string | undefined
    /** The `iss` claim that a token must have, exactly; undefined: no external issuer. */
    readonly issuer: string | undefined
    /** A token's `aud` claim must contain one of these; required with `issuer`. */
    readonly audience: ReadonlyArray<string> | undefined
    /** The claim that names the account; a dot selects a member of an object. */
    readonly accountClaim: string
    /** The claim that names the account's roles; a dot selects a member of an object. */
    readonly rolesClaim: string
    /** Prefix of the issuer's role names: with `restante-`, `restante-admin` is admin. */
    readonly rolesPrefix: string | undefined
    /**
     * `at+jwt`: only tokens whose header has this type (RFC 9068), so that no ID token is accepted.
     * `any`: also those that name no type, or `JWT`, as many issuers do.
     */
    readonly tokenType: "any" | "at+jwt"
    /**
     * `required`: a token without a word for this service in its claim `scope` has no right.
     * `optional`: it has all rights of its account.
     */
    readonly scope: "optional" | "required"
    /** How far the issuer's clock may differ from the node's, at most 5 minutes. */
    readonly clockTolerance: string
    /** Signature algorithms that tokens may use. */
    readonly algorithms: ReadonlyArray<string>
    /** PEM file of the CA that issued the key server's certificate, instead of the system's. */
    readonly ca: string | undefined
  }
  readonly proxies: {
    /** Prefixes (CIDR) of proxies in front of this service whose X-Forwarded-For is trusted. */
    readonly trusted: ReadonlyArray<string>
  }
  readonly rates: {
    /**
     * Requests that the clients of one network (/24 of IPv4, /48 of IPv6) may make at this node, as
     * `600/1m`: a quota and a window; bursts are allowed. `none`: no limit. Clients on this machine
     * are not limited. Set `proxies.trusted` where there are proxies, else all count as one.
     */
    readonly address: string
    /** Requests that one account may make at this node, in the same form. */
    readonly account: string
  }
  readonly log: {
    /** Least severe level that the node logs. */
    readonly level: "trace" | "debug" | "info" | "warn" | "error" | "none"
    /** `json` lines, `text` for people, or `auto`: text when standard error is a terminal. */
    readonly format: "auto" | "json" | "text"
  }
  readonly outgoing: {
    /** The wait before each attempt, the first included; after the last one the delivery fails. */
    readonly retrySchedule: ReadonlyArray<string>
    /** How long the service stores a notification after its last attempt. */
    readonly retention: string
    /** Foreign origins at which one notification may have more than 100 recipients. */
    readonly fanoutAllow: ReadonlyArray<string>
  }
  readonly outbound: {
    /** Address prefixes (CIDR) that outgoing requests may reach although they are not public. */
    readonly allow: ReadonlyArray<string>
  }
  readonly content: {
    /**
     * Origin of the URIs of content, on another host name than `baseUrl`, so that browsers separate
     * what strangers publish from the service. Undefined: content has the origin of the service.
     */
    readonly baseUrl: string | undefined
    /** Who may publish content. */
    readonly publish: "anyone" | "accounts"
    /** Largest content that a client may publish. */
    readonly bytesMax: string
    /** How long content that was published without an account is stored after its last read. */
    readonly anonymousRetention: string
  }
  readonly quotas: {
    /** Content of all clients without an account together; a content counts 1 KiB more. */
    readonly anonymousBytesMax: string
    /**
     * Content that such clients of one network (/24 of IPv4, /48 of IPv6) publish in a day of UTC.
     * Clients on this machine are not limited.
     */
    readonly anonymousNetworkBytesMax: string
    /** Content of one account, with that of the notifications in its mailboxes. */
    readonly accountBytesMax: string
    /**
     * Notifications that clients without an account have deposited in one mailbox, and nobody has
     * read or removed.
     */
    readonly mailboxAnonymousBytesMax: string
  }
  readonly disk: {
    /**
     * The least free space on the disk of `dataDir`, as a share (`10%`) or a size (`5GiB`). Below it
     * the embedded store takes nothing from clients without an account. `0`: no floor.
     */
    readonly freeMin: string
  }
  readonly documents: {
    /** Largest XML, JSON or notification document. */
    readonly bytesMax: string
    /** How deep the elements of an XML document may nest. */
    readonly xmlDepthMax: number
    /** Largest number of `to` elements in one notification. */
    readonly recipientsMax: number
  }
  readonly mailboxes: {
    /** How long a mailbox without its own setting stores a retrieved notification. */
    readonly retention: string
  }
  readonly sessions: {
    /** How long the service stores a session after its last change. */
    readonly retention: string
    /** `off`: the answer of a session is text, never a reference that the service reads. */
    readonly references: "on" | "off"
  }
  readonly audit: {
    /** How long the audit log keeps an entry. */
    readonly retention: string
  }
  readonly security: {
    /** URI in `/.well-known/security.txt`, such as `mailto:security@example.org`. */
    readonly contact: string | undefined
  }
  readonly metrics: {
    /**
     * Address of a listener that serves `/metrics` alone, without an account, such as
     * `0.0.0.0:9464`; a port alone is on loopback. Undefined: `/metrics` of the service, which is
     * open to clients on this machine and to admins.
     */
    readonly listen: string | undefined
  }
  /**
   * `on`: the node records its last messages and commits in memory, for `/cluster/messages` and for
   * the past of actors. Texts of users and secrets are not shown, and those of messages not kept.
   */
  readonly inspector: "on" | "off"
  /** What the node exports to an OpenTelemetry collector, by the names of OpenTelemetry. */
  readonly otel: {
    /** Base of the URLs of the collector, such as `http://127.0.0.1:4318`. Undefined: no export. */
    readonly endpoint: string | undefined
    /** `name=value,…`, percent-encoded. */
    readonly headers: string | undefined
    readonly protocol: "http/protobuf" | "http/json"
    /** Undefined: `service.name` of the attributes, else `restante`. */
    readonly serviceName: string | undefined
    /** `key=value,…`, percent-encoded. */
    readonly resourceAttributes: string | undefined
    readonly tracesExporter: "otlp" | "none"
    readonly metricsExporter: "otlp" | "none"
    /** Those with `parentbased` follow the client's own decision, if it sends one. */
    readonly tracesSampler:
      | "always_on"
      | "always_off"
      | "traceidratio"
      | "parentbased_always_on"
      | "parentbased_always_off"
      | "parentbased_traceidratio"
    /** Share of the traces, 0 to 1, that `traceidratio` selects. */
    readonly tracesSamplerArg: number
    /** Interval of the metrics in ms. */
    readonly metricExportInterval: number
  }
  readonly cors: {
    /**
     * Origin whose web pages may read responses and change resources (CORS). `*`: all may read, and
     * only the service's own pages change something; `none`: no other may do either.
     */
    readonly origin: string
  }
  /** How to reach NATS, when the node is one of a cluster. */
  readonly nats: {
    /** `nats://host:port` or `tls://host:port` of each server; undefined: the embedded store. */
    readonly url: ReadonlyArray<string> | undefined
    readonly user: string | undefined
    readonly password: string | undefined
    readonly token: string | undefined
    /** Seed of the NKey that authenticates the node. */
    readonly nkeySeed: string | undefined
    /** Credentials file with a JWT and a seed. */
    readonly creds: string | undefined
    /** PEM file of the CA that issued the servers' certificates. */
    readonly ca: string | undefined
    /** PEM file of the certificate that the node presents. */
    readonly cert: string | undefined
    /** PEM file of the key of that certificate. */
    readonly key: string | undefined
    /** 1: servers that are not on this machine may be without TLS or credentials. */
    readonly insecure: 0 | 1
    /** Replicas of each stream. Undefined: three if the servers are a cluster, else one. */
    readonly replicas: 1 | 3 | 5 | undefined
  }
  readonly cluster: {
    /** Unique name of this node. Undefined: the node generates one and stores it in `dataDir`. */
    readonly nodeId: string | undefined
    /**
     * Number of streams over which the actors are spread. It is the same for every node, and must
     * not change while there is data.
     */
    readonly buckets: number
  }
  readonly limits: {
    /** Largest number of actors in memory. Above it the node passivates idle actors. */
    readonly activationsMax: number
    /** Largest number of messages that one actor has not yet answered; it refuses one more. */
    readonly inboxMax: number
    /** The node passivates an actor that receives no message for this time. */
    readonly idleTimeout: string
    /** How long a stopping node waits for work in progress. */
    readonly drainTimeout: string
  }
}

export const clusterConfig: ClusterConfig = {
  host: "0.0.0.0",
  port: 8080,
  baseUrl: undefined,
  dataDir: "./data",
  storage: { engine: undefined },
  secrets: { keyFile: undefined },
  adminToken: undefined,
  auth: {
    jwks: undefined,
    issuer: undefined,
    audience: undefined,
    accountClaim: "sub",
    rolesClaim: "roles",
    rolesPrefix: undefined,
    tokenType: "any",
    scope: "optional",
    clockTolerance: "30s",
    algorithms: [
      ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
      ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
    ],
    ca: undefined
  },
  proxies: { trusted: [] },
  rates: { address: "6000/1m", account: "60000/1m" },
  log: { level: "info", format: "auto" },
  outgoing: {
    retrySchedule: ["0s", "5s", "1m", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"],
    retention: "P7D",
    fanoutAllow: []
  },
  outbound: { allow: [] },
  content: { baseUrl: undefined, publish: "anyone", bytesMax: "1GiB", anonymousRetention: "P30D" },
  quotas: {
    anonymousBytesMax: "2GiB",
    anonymousNetworkBytesMax: "256MiB",
    accountBytesMax: "10GiB",
    mailboxAnonymousBytesMax: "256MiB"
  },
  disk: { freeMin: "10%" },
  documents: { bytesMax: "256KiB", xmlDepthMax: 32, recipientsMax: 1000 },
  mailboxes: { retention: "P30D" },
  sessions: { retention: "P30D", references: "on" },
  audit: { retention: "P365D" },
  security: { contact: undefined },
  metrics: { listen: undefined },
  inspector: "off",
  otel: {
    endpoint: undefined,
    headers: undefined,
    protocol: "http/protobuf",
    serviceName: undefined,
    resourceAttributes: undefined,
    tracesExporter: "otlp",
    metricsExporter: "otlp",
    tracesSampler: "parentbased_always_on",
    tracesSamplerArg: 1,
    metricExportInterval: 60_000
  },
  cors: { origin: "*" },
  nats: {
    url: undefined,
    user: undefined,
    password: undefined,
    token: undefined,
    nkeySeed: undefined,
    creds: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    insecure: 0,
    replicas: undefined
  },
  cluster: { nodeId: undefined, buckets: 4 },
  limits: { activationsMax: 10_000, inboxMax: 10_000, idleTimeout: "60s", drainTimeout: "20s" }
}
