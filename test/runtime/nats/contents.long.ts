/** The contents port on three copies, of which any may be behind. */
import { Layer } from "effect"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsContents } from "../../../runtime/nats/contents/contents.ts"
import { natsRecords } from "../../../runtime/nats/records/records.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { contentsSuite } from "../../suites/contents.ts"
import { startCluster } from "./servers.ts"

const cluster = await startCluster(3)

contentsSuite(
  "JetStream, three copies",
  () =>
    Layer.mergeAll(natsStorage({ buckets: 2 }), natsContents({ buckets: 2 }), natsRecords).pipe(
      Layer.provide(connection({ servers: cluster.urls, name: "test" }))
    ),
  cluster.close
)
