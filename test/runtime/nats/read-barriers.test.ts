/** No read is older than its start, at any replica and with a false leader. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { NatsApi } from "../../../runtime/nats/connection/connection.ts"
import { ReadBarriers } from "../../../runtime/nats/connection/read-barriers.ts"
import { acknowledgedSequence, readLast,
  readLastOfMany } from "../../../runtime/nats/stream/reader.ts"

type Asking = Parameters<typeof readLast>[0]

type Replies = Awaited<ReturnType<NatsApi["requestMany"]>>

const stream = "KV_x"

/** A stream with a stale replica, such as a disconnected server that believes to lead. */
class Stale {
  readonly log: Array<{ readonly subject: string; readonly data: string }> = []
  private readonly behind: () => number
  asked = 0

  /** `behind`: by how many messages the next answering replica is behind. */
  constructor(behind: () => number) {
    this.behind = behind
  }

  put(subject: string, data: string): number {
    return this.log.push({ subject, data })
  }

  private copy(): number {
    return Math.max(0, this.log.length - this.behind())
  }

  /** The part of a message that the code reads: data, and these headers. */
  private message(data: string, code: number, fields: Record<string, string>): Replies[number] {
    const headers = {
      code,
      get: (name: string) => fields[name] ?? "",
      has: (name: string) => name in fields
    }
    const message = { headers, string: () => data, data: Buffer.from(data) }
    // The code reads nothing else of a message.
    return message as unknown as Replies[number]
  }

  readonly asking: Asking = (() => {
    const request: NatsApi["request"] = async (subject, data) => {
      const seq = this.put(subject, String(data))
      return this.message(JSON.stringify({ stream, seq }), 0, {})
    }
    const requestMany: NatsApi["requestMany"] = async (_, question) => {
      this.asked++
      const upTo = this.copy()
      const wanted: { readonly multi_last: ReadonlyArray<string> } = JSON.parse(question)
      const found = wanted.multi_last.flatMap((subject) => {
        const seq = 1 + this.log.slice(0, upTo).findLastIndex((one) => one.subject === subject)
        const data = this.log[seq - 1]?.data
        return data === undefined ? [] : [{ subject, seq, data }]
      }).sort((one, other) => one.seq - other.seq)
      if (found.length === 0) return [this.message("", 404, {})]
      const messages = found.map(({ data, seq, subject }, at) =>
        this.message(data, 0, {
          "Nats-Subject": subject,
          "Nats-Sequence": String(seq),
          "Nats-Last-Sequence": String(found[at - 1]?.seq ?? 0)
        })
      )
      const end = {
        "Nats-UpTo-Sequence": String(upTo),
        "Nats-Last-Sequence": String(found.at(-1)?.seq)
      }
      return [...messages, this.message("", 204, end)]
    }
    const barriers = new ReadBarriers({ request }, "a node")
    return {
      request,
      requestMany,
      dataBytesMax: () => Infinity,
      readBarrier: (of) => barriers.create(of)
    }
  })()
}

const lags = fc.array(fc.nat(6), { minLength: 1, maxLength: 8 })

/** Behind by these numbers in turn, then by none: replicas catch up. */
const catchingUp = (lags: ReadonlyArray<number>) => {
  let at = 0
  return () => lags[at++] ?? 0
}

describe("a read", () => {
  it("shows all that was acknowledged before it began", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(3), { minLength: 1, maxLength: 12 }),
        lags,
        async (puts, lags) => {
          const store = new Stale(catchingUp(lags))
          for (const [at, key] of puts.entries()) store.put(`k${key}`, `v${at}`)
          for (const key of [0, 1, 2, 3, 9]) {
            const at = puts.lastIndexOf(key)
            const found = await readLast(store.asking, stream, `k${key}`)
            expect(found?.text()).toBe(at < 0 ? undefined : `v${at}`)
          }
        }
      )
    ))

  it("of many keys too, when a copy has none of them yet", () =>
    fc.assert(
      fc.asyncProperty(fc.nat(5), lags, async (before, lags) => {
        const store = new Stale(catchingUp([6, ...lags]))
        for (let at = 0; at < before; at++) store.put("other", "x")
        store.put("k", "v")
        const covered = await acknowledgedSequence(store.asking, stream)
        const found = await readLastOfMany(store.asking, stream, ["k", "none"], covered)
        expect(found.map((one) => [one.subject, one.text()])).toEqual([["k", "v"]])
      })
    ))

  it("does not wait for another's mark that was sent before it", async () => {
    const store = new Stale(() => 0)
    const first = store.asking.readBarrier(stream)
    const [second, third] = [store.asking.readBarrier(stream), store.asking.readBarrier(stream)]
    const seqs = await Promise.all([first, second, third])
    expect(seqs.map((mark) => mark?.seq)).toEqual([1, 2, 2])
    expect(seqs[0]?.subject).toBe("$KV.x._seen.a_node")
  })
})
