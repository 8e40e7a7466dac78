/** The chunks of a blob on their way out. */
import { BlobAborted, StorageDamaged } from "../errors.ts"
import type { ByteRange } from "../ports/blobs.ts"
import {
  blobsPlace,
  type ChunkSet,
  chunkSubject,
  type Head,
  headSubject,
  parseHead
} from "./blob-keys.ts"
import type { NatsApi } from "./connection.ts"
import { blobGiveUpMs, blobReadsAhead, readMs } from "./limits.ts"
import { last, persist } from "./reader.ts"

export interface FoundBlob {
  readonly head: Head
  readonly seq: number
}

/** The head of a blob, from the leader. */
export const findHead = async (nats: NatsApi, id: string): Promise<FoundBlob | undefined> => {
  const stored = await last(nats, blobsPlace.stream, headSubject(id))
  return stored && { head: parseHead(stored.text()), seq: stored.seq }
}

const missing = async (nats: NatsApi, { id, set }: ChunkSet, n: number): Promise<Error> =>
  (await findHead(nats, id))?.head.set === set
    ? new StorageDamaged({ detail: `blob ${id} has no chunk ${n}` })
    : new BlobAborted({ detail: `blob ${id} was removed too long ago` })

/** A chunk never changes: any copy that has it will do, and the leader must have it. */
const readChunk = async (nats: NatsApi, chunks: ChunkSet, n: number): Promise<Uint8Array> => {
  const subject = chunkSubject(chunks, n)
  const question = `$JS.API.DIRECT.GET.${blobsPlace.stream}.${subject}`
  const ask = () => nats.request(question, "", undefined, readMs)
  const reply = await persist(ask, blobGiveUpMs)
  if ((reply.headers?.code ?? 0) === 0) return reply.data
  const stored = await last(nats, blobsPlace.stream, subject)
  if (stored === undefined) throw await missing(nats, chunks, n)
  return stored.bytes()
}

/** The bytes, a few chunks ahead of what is asked for. */
export async function* bytesOf(
  nats: NatsApi,
  id: string,
  head: Head,
  range: ByteRange | undefined
): AsyncIterable<Uint8Array> {
  const { chunkBytes, lengthBytes, set } = head
  const start = range?.start ?? 0
  const end = Math.min(range?.end ?? Infinity, lengthBytes - 1)
  if (start > end) return
  const lastN = Math.floor(end / chunkBytes)
  const ahead: Array<Promise<Uint8Array>> = []
  let asked = Math.floor(start / chunkBytes)
  for (let n = asked; n <= lastN; n++) {
    for (; asked <= lastN && asked < n + blobReadsAhead; asked++) {
      const reading = readChunk(nats, { id, set }, asked)
      // Told when it is its turn, if ever.
      reading.catch(() => undefined)
      ahead.push(reading)
    }
    const bytes = await ahead.shift()
    const at = n * chunkBytes
    if (bytes?.length !== Math.min(chunkBytes, lengthBytes - at)) {
      throw new StorageDamaged({ detail: `blob ${id}: chunk ${n} has another length` })
    }
    yield bytes.subarray(Math.max(0, start - at), Math.min(chunkBytes, end - at + 1))
  }
}
