/**
 * What the store relies on of JetStream. It runs against real servers and against the simulated
 * ones, and so checks the simulation.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readTimeoutMs } from "../../runtime/limits.ts"
import type { NatsApi } from "../../runtime/nats/connection/connection.ts"
import { ApiError } from "../../runtime/nats/connection/retries.ts"
import { ensureBucket } from "../../runtime/nats/stream/buckets.ts"
import type { Bucket } from "../../runtime/nats/stream/keys.ts"
import { acknowledgedSequence, callApi, readFirstOfMany, readLast, readLastFromLeader,
  readLastOfMany, streamInfo } from "../../runtime/nats/stream/reader.ts"
import { expectSequence, type StreamMessage, write } from "../../runtime/nats/stream/writer.ts"
import type { Fresh, Harness } from "./harness.ts"

const bucketName = "contract"

/** Longer than a message of one second stays. */
const fadedMs = 3_000

export const jetstreamSuite = (name: string, fresh: Fresh<NatsApi>): void => {
  describe(`JetStream: ${name}`, () => {
    let harness: Harness<NatsApi>
    let nats: NatsApi
    let bucket: Bucket
    beforeEach(async () => {
      harness = await fresh()
      nats = harness.api
      bucket = await ensureBucket(nats, bucketName)
      // A new stream of several servers takes no message before it has elected its leader.
      const leader = async () => {
        const { cluster } = await streamInfo(nats, bucket.stream)
        return cluster === undefined || (cluster.leader ?? "") !== ""
      }
      await expect.poll(() => leader().catch(() => false), { timeout: 60_000 }).toBe(true)
      // And the server of this connection may not know yet who takes its subjects: 503. The
      // message itself is refused.
      const refused = () => put(message("none", "", expectSequence(7)))
      await expect.poll(refused, { timeout: 60_000 }).toEqual(rejected(10_071))
    })
    afterEach(() => harness.close())

    const message = (key: string, data = "", headers = ""): StreamMessage => ({
      subject: bucket.prefix + key,
      data,
      headers
    })
    const put = (...messages: ReadonlyArray<StreamMessage>) => write(nats, messages)
    const stored = (first: number) => ({ _tag: "Stored", first })
    const rejected = (code: number) => expect.objectContaining({ _tag: "Rejected", code })
    const lastSeq = async () => (await streamInfo(nats, bucket.stream)).state.last_seq
    const text = async (key: string) =>
      (await readLastFromLeader(nats, bucket.stream, bucket.prefix + key))?.text()
    /** The error code of a call; undefined: it succeeded. */
    const codeOf = (call: string, question: object): Promise<number | undefined> =>
      callApi(nats, call, question).then(
        () => undefined,
        (error: unknown) => error instanceof ApiError ? error.code : -1
      )
    const statusOf = async (subjects: ReadonlyArray<string>) => {
      const question = JSON.stringify({ multi_last: subjects })
      const replies = await nats.requestMany(`$JS.API.DIRECT.GET.${bucket.stream}`, question, 5_000)
      return replies.at(-1)?.headers?.code
    }

    it("describes a stream as it was made, and knows no other", async () => {
      const { config, created } = await callApi<
        { readonly config: Record<string, unknown>; readonly created: string }
      >(nats, `STREAM.INFO.${bucket.stream}`, {})
      expect(config).toMatchObject({ max_msgs_per_subject: 1, allow_atomic: true })
      expect(Math.abs(Date.now() - Date.parse(created))).toBeLessThan(60_000)
      expect(await codeOf("STREAM.INFO.KV_none", {})).toBe(10_059)
      expect(await codeOf(`STREAM.CREATE.${bucket.stream}`, { ...config, max_msgs: 7 }))
        .toBe(10_058)
    })

    it("numbers messages and the members of a batch", async () => {
      expect(await put(message("a", "1"))).toEqual(stored(1))
      expect(await put(message("a", "2"), message("b", "3"), message("a", "4"))).toEqual(stored(2))
      expect(await put(message("c"))).toEqual(stored(5))
      expect([await text("a"), await text("b"), await text("c")]).toEqual(["4", "3", ""])
      expect(await lastSeq()).toBe(5)
    })

    it("stores a message only at the expected sequence of its subject", async () => {
      expect(await put(message("a", "1", expectSequence(0)))).toEqual(stored(1))
      expect(await put(message("a", "2", expectSequence(0)))).toEqual(rejected(10_071))
      expect(await put(message("a", "2", expectSequence(7)))).toEqual(rejected(10_071))
      expect(await put(message("b", "", expectSequence(1)))).toEqual(rejected(10_071))
      expect(await put(message("a", "2", expectSequence(1)))).toEqual(stored(2))
      expect([await text("a"), await lastSeq()]).toEqual(["2", 2])
    })

    it("stores a message only at the expected sequence of another subject", async () => {
      await put(message("a"))
      const of = `${bucket.prefix}a`
      expect(await put(message("b", "1", expectSequence(0, of)))).toEqual(rejected(10_071))
      expect(await put(message("b", "1", expectSequence(1, of)))).toEqual(stored(2))
      expect(await put(message("b", "2", expectSequence(1, of)))).toEqual(stored(3))
    })

    it("stores nothing of a batch with one stale member", async () => {
      expect(await put(message("a", "1"))).toEqual(stored(1))
      const batch = [message("b"), message("a", "2", expectSequence(9)), message("c")]
      expect(await put(...batch)).toEqual(rejected(10_071))
      expect(await put(...batch.toReversed())).toEqual(rejected(10_071))
      expect([await text("a"), await text("b"), await text("c"), await lastSeq()])
        .toEqual(["1", undefined, undefined, 1])
    })

    it("rejects an expectation on what the batch has written before", async () => {
      const after = [message("a"), message("a", "", expectSequence(1))]
      expect(await put(...after)).toEqual(rejected(10_164))
      const other = message("b", "", expectSequence(0, `${bucket.prefix}a`))
      expect(await put(message("a"), other)).toEqual(rejected(10_164))
      expect(await put(other, message("a"))).toEqual(stored(1))
    })

    it("stores nothing of a batch that lost a member", async () => {
      const losing = {
        ...nats,
        publish: (...published: Parameters<NatsApi["publish"]>) => {
          if (!published[0].endsWith(".lost")) nats.publish(...published)
        }
      }
      const batch = [message("a"), message("lost"), message("c")]
      expect(await write(losing, batch)).toEqual(rejected(10_176))
      expect(await lastSeq()).toBe(0)
    })

    it("takes a thousand messages in a batch", async () => {
      const many = Array.from({ length: 1_001 }, (_, at) => message(`n.${at}`))
      expect(await put(...many.slice(1))).toEqual(stored(1))
      expect(await put(...many)).toMatchObject({ _tag: "Indeterminate" })
      expect(await lastSeq()).toBe(1_000)
    })

    it("takes no message above max_payload, and no batch with one", async () => {
      const max = nats.nc.info?.max_payload ?? 0
      expect(max).toBeGreaterThan(0)
      const large = message("large", "x".repeat(max))
      expect(await put(large)).toMatchObject({ _tag: "Indeterminate" })
      expect(await put(message("a"), large)).toMatchObject({ _tag: "Indeterminate" })
      expect(await lastSeq()).toBe(0)
      expect(await put(message("large", "x".repeat(max - 1_024)))).toEqual(stored(1))
    })

    it("reports that nobody takes a subject without a stream", async () => {
      expect(await write(nats, [{ subject: "$KV.none.a", data: "", headers: "" }]))
        .toEqual(rejected(503))
    })

    it("gets the last message of a subject, the next one, and one by its sequence", async () => {
      await put(message("a", "1", "Own-Field: x\r\n"), message("b", "2"), message("a", "3"))
      const get = `STREAM.MSG.GET.${bucket.stream}`
      const last = await readLastFromLeader(nats, bucket.stream, `${bucket.prefix}b`)
      expect([last?.seq, last?.text(), last?.header("Own-Field")]).toEqual([2, "2", undefined])
      expect(await codeOf(get, { last_by_subj: `${bucket.prefix}c` })).toBe(10_037)
      expect(await codeOf(get, { seq: 2 })).toBeUndefined()
      // The next message of its subject has replaced it.
      expect(await codeOf(get, { seq: 1 })).toBe(10_037)
      expect(await codeOf(get, { seq: 1, next_by_subj: `${bucket.prefix}>` })).toBeUndefined()
      expect(await codeOf(get, { seq: 4, next_by_subj: `${bucket.prefix}>` })).toBe(10_037)
    })

    it("gets the last messages of many subjects from one replica, in their order", async () => {
      await put(message("b", "1", "Own-Field: x\r\n"), message("a", "2"), message("c", "3"))
      const seq = await acknowledgedSequence(nats, bucket.stream)
      const subjects = ["c", "missing", "b"].map((key) => bucket.prefix + key)
      const found = await readLastOfMany(nats, bucket.stream, subjects, seq)
      expect(found.map((one) => [one.seq, one.text(), one.header("Own-Field")]))
        .toEqual([[1, "1", "x"], [3, "3", undefined]])
      expect(await statusOf(subjects)).toBe(204)
      expect(await statusOf([`${bucket.prefix}missing`])).toBe(404)
      const last = await readLast(nats, bucket.stream, `${bucket.prefix}missing`)
      expect(last).toBeUndefined()
    })

    it("ends an answer with the message that exceeds the bytes of a read", async () => {
      for (const key of ["a", "b", "c", "d"]) await put(message(key, key.repeat(10_000)))
      const seq = await acknowledgedSequence(nats, bucket.stream)
      const subjects = ["missing", "a", "b", "c", "d"].map((key) => bucket.prefix + key)
      const found = async (bytesMax: number, countMin = 1) => {
        const bounds = { bytesMax, countMin }
        const read = await readFirstOfMany(nats, bucket.stream, subjects, seq, bounds)
        expect(read.stored.map(({ subject }) => subject)).toEqual(subjects.slice(1, read.count))
        return read.count
      }
      const answer = await nats.requestMany(
        `$JS.API.DIRECT.GET.${bucket.stream}`,
        JSON.stringify({ multi_last: subjects, max_bytes: 15_000 }),
        readTimeoutMs
      )
      const bytes = answer.reduce((sum, { data }) => sum + data.length, 0)
      expect(bytes).toBeLessThanOrEqual(20_000)
      expect(await found(100_000)).toBe(5)
      expect(await found(25_000)).toBeLessThan(5)
      expect(await found(1)).toBe(1)
      expect(await found(1, 3)).toBe(3)
    })

    it("refuses a read of more subjects than it sends at once", async () => {
      const many = Array.from({ length: 1_100 }, (_, at) => message(`n.${at}`))
      await put(...many.slice(0, 550))
      await put(...many.slice(550))
      const subjects = [`${bucket.prefix}n.*`]
      await expect.poll(() => statusOf(subjects)).toBe(413)
    })

    it("lists the subjects that match, page by page", async () => {
      const keys = ["a.1.x", "a.1.y", "a.2.x", "b.1.x", "a.1", "a.1.x.z"]
      await put(...keys.map((key) => message(key)))
      const list = async (filter: string, offset = 0) => {
        const question = { subjects_filter: bucket.prefix + filter, offset }
        const { state, total } = await callApi<Awaited<ReturnType<typeof streamInfo>>>(
          nats,
          `STREAM.INFO.${bucket.stream}`,
          question
        )
        const names = Object.keys(state.subjects ?? {}).sort()
        return [total, ...names.map((name) => name.slice(bucket.prefix.length))]
      }
      expect(await list("a.*.x")).toEqual([2, "a.1.x", "a.2.x"])
      expect(await list("a.1.>")).toEqual([3, "a.1.x", "a.1.x.z", "a.1.y"])
      expect(await list("*.1.x")).toEqual([2, "a.1.x", "b.1.x"])
      expect(await list("a.1.>", 1)).toEqual([3, "a.1.x.z", "a.1.y"])
      expect((await list("none.>")).slice(1)).toEqual([])
    })

    it("purges what is older than a sequence", async () => {
      await put(message("a.1"), message("a.2"), message("b.1"), message("a.3"))
      const filter = `${bucket.prefix}a.>`
      expect(await codeOf(`STREAM.PURGE.${bucket.stream}`, { filter, seq: 4 })).toBeUndefined()
      const left = await Promise.all(["a.1", "a.2", "b.1", "a.3"].map(text))
      expect(left).toEqual([undefined, undefined, "", ""])
      expect(await put(message("a.1", "", expectSequence(0)))).toEqual(stored(5))
    })

    it("removes a message after its time, as if it had never been there", async () => {
      await put(message("a", "1", "Nats-TTL: 1s\r\n"), message("b", "2"))
      expect(await text("a")).toBe("1")
      expect(await put(message("a", "2", expectSequence(0)))).toEqual(rejected(10_071))
      await new Promise((resolve) => setTimeout(resolve, fadedMs))
      await expect.poll(() => text("a")).toBeUndefined()
      expect(await text("b")).toBe("2")
      expect(await put(message("a", "3", expectSequence(0)))).toEqual(stored(3))
    })
  })
}
