/**
 * JetStream alone, as fast as one process can write: the messages of deposits into 100 mailboxes in
 * turn, by compare-and-set. `single`: the mailbox's record, 256 in flight, with replies in one
 * inbox. `batch`: the log item, in atomic batches of 200, four in flight. Prints acknowledged
 * writes per second.
 */
import { Effect } from "effect"
import { connection, Nats, type NatsApi } from "../../runtime/nats/connection/connection.ts"
import { ensureBucket } from "../../runtime/nats/stream/buckets.ts"
import { expectSequence, type StreamMessage, write } from "../../runtime/nats/stream/writer.ts"

const [servers = "", mode = "single", seconds = "4"] = process.argv.slice(2)

const forms = { single: { inFlight: 256, messages: 1 }, batch: { inFlight: 4, messages: 200 } }
const { inFlight, messages } = mode === "batch" ? forms.batch : forms.single
const bucket = `raw-${mode}-${process.pid}`
const mailboxes = 100
/** As long as the log item of a deposit of `load/deposit.lua`. */
const data = "x".repeat(324)
const actor = (at: number): string => `$KV.${bucket}.146.mailbox.m${at}`

let written = 0
let acknowledged = 0
/** `records`: the stream sequences of the mailboxes' records. */
const message = (records: ReadonlyArray<number>): StreamMessage => {
  const at = written++ % mailboxes
  // Concurrent batches may compare a record only once.
  const fence = messages > 1
    ? expectSequence(0)
    : expectSequence(records[at] ?? 0, `${actor(at)}.state`)
  return {
    subject: `${actor(at)}.log.${written}`,
    data,
    headers: `${fence}Restante-Commit: raw${written.toString(36)}\r\n`
  }
}

const makeRecord = async (nats: NatsApi, at: number): Promise<number> => {
  const record = { subject: `${actor(at)}.state`, data: "{}", headers: "" }
  const outcome = await write(nats, [record])
  if (outcome._tag !== "Stored") throw new Error(`a record was not kept: ${outcome.detail}`)
  return outcome.first
}

const run = Effect.gen(function*() {
  const nats = yield* Nats
  yield* Effect.promise(() => ensureBucket(nats, bucket))
  const records: Array<number> = []
  for (let at = 0; at < mailboxes; at++) {
    records.push(yield* Effect.promise(() => makeRecord(nats, at)))
  }
  const untilMs = performance.now() + Number(seconds) * 1_000
  const worker = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const outcome = await write(nats, Array.from({ length: messages }, () => message(records)))
      if (outcome._tag !== "Stored") throw new Error(`a write was not kept: ${outcome.detail}`)
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
