/** Downloads of blobs from JetStream request few chunks at once, however many clients ask. */
import { setImmediate as turn } from "node:timers/promises"
import { expect, it } from "vitest"
import { blobChunkReadsMax } from "../../../runtime/limits.ts"
import { readBlob } from "../../../runtime/nats/blobs/blob-transfer.ts"
import type { NatsApi } from "../../../runtime/nats/connection/index.ts"

const chunkBytes = 4
const chunks = 5
const downloads = 2 * blobChunkReadsMax

const collected = async (source: AsyncIterable<Uint8Array>): Promise<number> => {
  let bytes = 0
  for await (const chunk of source) bytes += chunk.length
  return bytes
}

it("requests few chunks at once, and each download gets all of its own", async () => {
  let underWay = 0
  let most = 0
  const request = async () => {
    most = Math.max(most, ++underWay)
    await turn()
    underWay--
    return { data: new Uint8Array(chunkBytes) }
  }
  // A download asks for chunks alone.
  const nats = { request } as unknown as NatsApi
  const lengthBytes = chunks * chunkBytes
  const head = { chunkBytes, lengthBytes, set: "set", digest: "" }
  const all = Array.from(
    { length: downloads },
    (_, n) => collected(readBlob(nats, `blob${n}`, head, undefined))
  )
  expect(await Promise.all(all)).toEqual(Array.from({ length: downloads }, () => lengthBytes))
  expect(most).toBe(blobChunkReadsMax)
})
