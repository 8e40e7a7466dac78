/** Writing records without answers: the write fails, and never reports a false outcome. */
import type { Msg } from "@nats-io/transport-node"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { giveUpMs } from "../../../runtime/limits.ts"
import type { NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { recordSubject } from "../../../runtime/nats/records/record-keys.ts"
import { RecordWriter } from "../../../runtime/nats/records/record-writer.ts"
import { headerIn } from "../../../runtime/nats/stream/reader.ts"
import type { RecordChange } from "../../../runtime/ports/records.ts"

beforeEach(() => void vi.useFakeTimers())

afterEach(() => void vi.useRealTimers())

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const change = { table: "t", key: "k", value: "new" }

/** Servers with scripted answers, or none. */
const servers = () => {
  const says: { read: string | undefined; written: string | undefined } = {
    read: undefined,
    written: undefined
  }
  const request: NatsApi["request"] = async (subject, _, headers, timeoutMs) => {
    sent.set(subject, headers ?? "")
    const answer = subject.startsWith("$JS.API") ? says.read : says.written
    if (answer !== undefined) return { string: () => answer } as Msg // all that is read of it
    await pause(timeoutMs)
    throw new NoReply(subject, "timeout")
  }
  /** The headers of the last message at each subject. */
  const sent = new Map<string, string>()
  const publish: NatsApi["publish"] = (subject, _, headers) => void sent.set(subject, headers ?? "")
  const nc = { isClosed: () => false, info: { max_payload: 1_000_000 } }
  const dataBytesMax = () => Infinity
  const api = { request, publish, nc, dataBytesMax, readBarrier: async () => undefined }
  // It has every part of a connection that the code uses.
  return { says, sent, writer: new RecordWriter(api as unknown as NatsApi) }
}

const submitted = (
  writer: RecordWriter,
  expected: ReadonlyArray<RecordChange>,
  changes: ReadonlyArray<RecordChange> = [change]
) => {
  const reported: Array<string> = []
  const job = {
    changes,
    expected,
    sinceMs: performance.now(),
    done: (isKept: boolean) => void reported.push(`done ${isKept}`),
    failed: ({ _tag }: { readonly _tag: string }) => void reported.push(_tag),
    abandoned: false
  }
  writer.submit(job)
  return { job, reported }
}

const missing = JSON.stringify({ error: { code: 404, err_code: 10_037, description: "none" } })

const longMs = 3 * giveUpMs

it("fails if the expected record cannot be read, and writes later changes", async () => {
  const { says, writer } = servers()
  const first = submitted(writer, [change])
  await vi.advanceTimersByTimeAsync(longMs)
  expect(first.reported).toEqual(["StorageUnavailable"])
  says.read = missing
  says.written = JSON.stringify({ seq: 2 })
  const second = submitted(writer, [])
  await vi.advanceTimersByTimeAsync(longMs)
  expect(second.reported).toEqual(["done true"])
})

it("does not report a false outcome when the outcome is indeterminate", async () => {
  const { says, writer } = servers()
  // Nothing is there, as is expected; then neither the write nor what has become of it is answered.
  says.read = missing
  const one = submitted(writer, [{ ...change, value: null }])
  await vi.advanceTimersByTimeAsync(1)
  says.read = undefined
  await vi.advanceTimersByTimeAsync(longMs)
  expect(one.reported).toEqual([])
  one.job.abandoned = true
  await vi.advanceTimersByTimeAsync(longMs)
  expect(one.reported).toEqual([])
})

it("gives the marker of a deletion a time to live only if it may be forgotten", async () => {
  const { says, sent, writer } = servers()
  says.written = JSON.stringify({ seq: 3, count: 3 })
  const gone = { ...change, value: null }
  const { reported } = submitted(writer, [], [gone, { ...gone, key: "brief", markerExpires: true }])
  await vi.advanceTimersByTimeAsync(longMs)
  expect(reported).toEqual(["done true"])
  const kept = ["k", "brief"].map((key) => {
    const headers = sent.get(recordSubject("t", key)) ?? ""
    return [headerIn(headers, "KV-Operation"), headerIn(headers, "Nats-TTL")]
  })
  expect(kept).toEqual([["DEL", undefined], ["DEL", "3600s"]])
})
