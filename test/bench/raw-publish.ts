/**
 * JetStream alone, as fast as one process writes to it: messages of the size of a deposit's, each
 * by compare-and-set. `single`: 256 in flight, each with its own reply in one inbox. `batch`:
 * atomic batches of 200, four in flight. Writes how many a second were acknowledged.
 */
import { Effect } from "effect"
import { makeBucket } from "../../runtime/nats/buckets.ts"
import { connection, Nats } from "../../runtime/nats/connection.ts"
import { expecting, type Message, write } from "../../runtime/nats/wire.ts"

const [servers = "", mode = "single", seconds = "4", bytes = "400"] = process.argv.slice(2)

const forms = { single: { inFlight: 256, messages: 1 }, batch: { inFlight: 4, messages: 200 } }
const { inFlight, messages } = mode === "batch" ? forms.batch : forms.single
const bucket = `raw-${mode}-${process.pid}`
const data = "x".repeat(Number(bytes))

let written = 0
let acknowledged = 0
const message = (): Message => ({
  subject: `$KV.${bucket}.${written++}`,
  data,
  headers: expecting(0)
})

const run = Effect.gen(function*() {
  const nats = yield* Nats
  yield* Effect.promise(() => makeBucket(nats, bucket))
  const untilMs = performance.now() + Number(seconds) * 1_000
  const worker = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const outcome = await write(nats, Array.from({ length: messages }, message))
      if (outcome._tag !== "Kept") throw new Error(`a write was not kept: ${outcome.detail}`)
      acknowledged += messages
    }
  }
  yield* Effect.promise(() => Promise.all(Array.from({ length: inFlight }, worker)))
  yield* Effect.promise(() => nats.jsm.streams.delete(`KV_${bucket}`))
})

await Effect.runPromise(
  Effect.scoped(Effect.provide(run, connection({ servers: servers.split(","), name: "raw" })))
)
process.stdout.write(String(acknowledged / Number(seconds)))
process.exit(0)
