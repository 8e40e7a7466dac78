/** The contents port on JetStream. */
import { Layer } from "effect"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsContents } from "../../../runtime/nats/contents/contents.ts"
import { natsRecords } from "../../../runtime/nats/records/records.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { contentsSuite } from "../../suites/contents.ts"
import { startServer } from "./servers.ts"

const server = await startServer()

contentsSuite(
  "JetStream",
  () =>
    Layer.mergeAll(natsStorage(), natsContents(), natsRecords).pipe(
      Layer.provide(connection({ servers: [server.url], name: "test" }))
    ),
  server.close
)
