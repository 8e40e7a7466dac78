/** Uploads and downloads without a leader: those that have begun wait longer than new ones. */
import type { Msg } from "@nats-io/transport-node"
import { randomBytes } from "node:crypto"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { StorageUnavailable } from "../../../runtime/actor/errors.ts"
import { blobGiveUpMs, giveUpMs } from "../../../runtime/limits.ts"
import { readBlob, storeBlob } from "../../../runtime/nats/blobs/blob-transfer.ts"
import type { NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"

beforeEach(() => void vi.useFakeTimers())

afterEach(() => void vi.useRealTimers())

const CHUNK_BYTES = 100

/** Servers that lose their leader at one chunk, for a while. */
const servers = (leaderless: number) => {
  const state = { isLed: false, isClosed: false, kept: 0 }
  const request: NatsApi["request"] = async (subject) => {
    if (!state.isLed && state.kept >= leaderless) throw new NoReply(subject, "no responders")
    const answer = JSON.stringify({ seq: ++state.kept })
    return { string: () => answer } as Msg // all that is read of it
  }
  // It has every part of a connection that the code uses.
  const api = { request, nc: { isClosed: () => state.isClosed } } as unknown as NatsApi
  return { api, state }
}

async function* chunks(count: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < count; at++) yield randomBytes(CHUNK_BYTES)
}

const upload = (api: NatsApi) => {
  const reported: Array<unknown> = []
  const never = new AbortController().signal
  storeBlob(api, { id: "one", set: "set" }, CHUNK_BYTES, chunks(6), 1_000, never).then(
    ({ lengthBytes }) => reported.push(lengthBytes),
    (error: unknown) => reported.push(error)
  )
  return reported
}

it("continues when a leader is elected late", async () => {
  const { api, state } = servers(3)
  const reported = upload(api)
  await vi.advanceTimersByTimeAsync(blobGiveUpMs - 1_000)
  expect(reported).toEqual([])
  state.isLed = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reported).toEqual([600])
  expect(state.kept).toBe(6)
})

it("ends when none is elected", async () => {
  const { api } = servers(3)
  const reported = upload(api)
  await vi.advanceTimersByTimeAsync(blobGiveUpMs + 1_000)
  expect(reported).toEqual([expect.any(StorageUnavailable)])
})

it("ends sooner when nothing of it was stored, or the connection was closed", async () => {
  const fresh = upload(servers(0).api)
  await vi.advanceTimersByTimeAsync(giveUpMs + 1_000)
  expect(fresh).toEqual([expect.any(StorageUnavailable)])
  const { api, state } = servers(3)
  const begun = upload(api)
  await vi.advanceTimersByTimeAsync(1_000)
  state.isClosed = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(begun).toEqual([expect.any(StorageUnavailable)])
})

it("continues a download, too, when a leader is elected late", async () => {
  const { api, state } = servers(0)
  const data = randomBytes(CHUNK_BYTES)
  const chunked: NatsApi["request"] = async (...asked) => {
    const reply = await api.request(...asked)
    return { ...reply, data }
  }
  const head = { digest: "", set: "set", lengthBytes: CHUNK_BYTES, chunkBytes: CHUNK_BYTES }
  const pieces = readBlob({ ...api, request: chunked }, "one", head, undefined)
  const reported: Array<Uint8Array | undefined> = []
  void pieces[Symbol.asyncIterator]().next().then(({ value }) => reported.push(value))
  await vi.advanceTimersByTimeAsync(blobGiveUpMs - 1_000)
  expect(reported).toEqual([])
  state.isLed = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reported).toEqual([data])
})
