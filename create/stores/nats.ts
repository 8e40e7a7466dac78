/** Where the actors are kept: on NATS JetStream, 2.12 or later. Every node joins the cluster. */
import type { Store } from "@restante/runtime"
import { nats } from "@restante/runtime/nats"

const secret = process.env["CLUSTER_SECRET"]

export const openStore = (): Store =>
  nats(
    process.env["NATS_URL"] ?? "nats://127.0.0.1:4222",
    // Nodes on servers that others can reach need a secret, the same on all of them.
    secret === undefined ? {} : { secret }
  )
