/** What the store relies on of JetStream holds on real servers, as on the simulated ones. */
import { afterAll, beforeAll, describe } from "vitest"
import { connection, Nats } from "../../../runtime/nats/connection/connection.ts"
import { jetstreamSuite } from "../../suites/jetstream.ts"
import { fromLayer } from "../../suites/harness.ts"
import { removeStreams } from "./backend.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

describe.each([1, 3])("%i servers", (count) => {
  let servers: NatsCluster | NatsServer
  beforeAll(async () => {
    servers = count === 1 ? await startServer() : await startCluster(count)
  })
  afterAll(() => servers.close())
  const urls = () => "urls" in servers ? servers.urls : [servers.url]
  jetstreamSuite(
    `${count} real`,
    () =>
      fromLayer(Nats, connection({ servers: urls(), name: "test" }), () => removeStreams(urls()))
  )
})
