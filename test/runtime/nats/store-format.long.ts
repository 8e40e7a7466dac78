/** A store of another format is refused at the start, and is not changed. */
import { connect } from "@nats-io/transport-node"
import { jetstreamManager } from "@nats-io/jetstream"
import { afterAll, afterEach, beforeEach, expect, it } from "vitest"
import { cleanUp, launch, start } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

const configurationExit = 78

let nats: NatsServer

beforeEach(async () => {
  nats = await startServer()
})

afterEach(() => nats.close())

afterAll(cleanUp)

/** Changes the metadata of a stream, and returns its number of messages. */
const annotate = async (stream: string, change: (metadata: Map<string, string>) => void) => {
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc)
  const { config, state } = await jsm.streams.info(stream)
  const metadata = new Map(Object.entries(config.metadata ?? {}))
  change(metadata)
  await jsm.streams.update(stream, { metadata: Object.fromEntries(metadata) })
  await nc.close()
  return state.messages
}

it.each([
  ["KV_actors", undefined, "1 (none noted)"],
  ["KV_actors", "2", "2"],
  ["KV_records", undefined, "1 (none noted)"],
  ["KV_blobs", "4", "4"]
])("is refused with 78: %s with %s", async (stream, format, found) => {
  const env = { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", NODE_ID: "one" }
  await (await start({ env })).stop()
  const messages = await annotate(stream, (metadata) => {
    if (format === undefined) metadata.delete("restante_format")
    else metadata.set("restante_format", format)
  })
  const second = launch({ env })
  expect(await second.ended).toMatchObject({ code: configurationExit })
  expect(second.output).toContain(
    `cannot be opened: its store has format ${found} in the stream ${stream}, and this version ` +
      "reads format 3. Run the version that wrote the store, which can export it (`restante " +
      "backup <file>`), or start with an empty store (another DATA_DIR or NATS_URL)"
  )
  expect(await annotate(stream, () => {})).toBe(messages)
})
