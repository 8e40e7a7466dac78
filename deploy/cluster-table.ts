/** The settings of a node that is one of a cluster. */
import { clusterConfig } from "../cluster.config.ts"
import { optional, setting, withoutFlag } from "./setting.ts"
import { integer, list, natsServer, nodeName, oneNumberOf, secret, text } from "./values.ts"

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
