/** When a view resumes, and how its messages become batches. */
import type { JsMsg } from "@nats-io/jetstream"
import { describe, expect, it } from "vitest"
import { viewResumeMaxMs, viewWriteMessages } from "../../../runtime/limits.ts"
import { recordSubject } from "../../../runtime/nats/records/record-keys.ts"
import { canResume, decodeProgress, encodeProgress, RecordFeed,
  type ViewProgress } from "../../../runtime/nats/records/record-view.ts"

const note: ViewProgress = { created: "then", seq: 10, writtenMs: 1_000, completeAtMs: 2_000 }

const standing = { created: "then", firstSeq: 3, lastSeq: 12, nowMs: 3_000, writtenMs: 1_000 }

describe("a view", () => {
  it.each([
    ["where it was", {}, {}, true],
    ["at the very end", { seq: 12 }, {}, true],
    ["though its last message was replaced", {}, { writtenMs: undefined }, true],
    ["that is empty, of a stream that has lost its beginning", { seq: 0 }, { firstSeq: 9 }, true],
    ["of another stream", {}, { created: "now" }, false],
    ["of a stream that has lost its end", {}, { lastSeq: 9 }, false],
    ["of a stream that lost its end and goes on otherwise", {}, { writtenMs: 1_001 }, false],
    ["of which the stream has nothing any more", {}, { firstSeq: 11 }, false],
    ["that was fed just in time", {}, { nowMs: 2_000 + viewResumeMaxMs }, true],
    ["that was fed too long ago", {}, { nowMs: 2_001 + viewResumeMaxMs }, false]
  ])("%s", (_, noted, stands, expected) => {
    const { writtenMs, ...others } = standing
    expect(canResume({ ...note, ...noted }, { writtenMs, ...others, ...stands })).toBe(expected)
  })
  it("decodes its own progress, and no other text", () => {
    expect(decodeProgress(encodeProgress(note))).toEqual(note)
    const other = encodeProgress(note).replace(/"version":\d+/, "\"version\":0")
    for (const text of [undefined, "", "{", "null", "{}", other]) {
      expect(decodeProgress(text)).toBeUndefined()
    }
  })
})

interface Sent {
  readonly seq: number
  readonly key?: string
  readonly batch?: string
  readonly isCommit?: boolean
  readonly pending?: number
}

/** The part of a message that the feed reads. */
const message = ({ batch, isCommit, key = "k", pending = 9, seq }: Sent): JsMsg => {
  const headers = new Map<string, string>()
  if (batch !== undefined) headers.set("Nats-Batch-Id", batch)
  if (isCommit === true) headers.set("Nats-Batch-Commit", "1")
  const seen = {
    seq,
    subject: recordSubject("t", key),
    headers: { has: (name: string) => headers.has(name), get: (name: string) => headers.get(name) },
    info: { pending },
    time: new Date(seq),
    string: () => `value ${seq}`
  }
  // It has every part of a message that the feed reads.
  return seen as unknown as JsMsg
}

const pieces = (...sent: ReadonlyArray<Sent>): ReadonlyArray<number> => {
  const feed = new RecordFeed()
  const seqs: Array<number> = []
  for (const one of sent) {
    feed.add(message(one))
    const piece = feed.next()
    if (piece !== undefined) seqs.push(piece.seq)
  }
  return seqs
}

describe("messages", () => {
  it("are returned in order, and batches as a whole", () => {
    expect(pieces({ seq: 1 }, { seq: 4 })).toEqual([1, 4])
    expect(pieces({ seq: 1, batch: "a" }, { seq: 2, batch: "a" })).toEqual([])
    const whole = [{ seq: 1, batch: "a" }, { seq: 2, batch: "a", isCommit: true }]
    expect(pieces(...whole, { seq: 3 })).toEqual([2, 3])
  })
  it("end a batch whose end was deleted", () => {
    expect(pieces({ seq: 1, batch: "a" }, { seq: 5, batch: "b" })).toEqual([1])
    expect(pieces({ seq: 1, batch: "a" }, { seq: 5 })).toEqual([5])
    expect(pieces({ seq: 1, batch: "a", pending: 0 })).toEqual([1])
  })
  it("are split between batches if there are many", () => {
    const feed = new RecordFeed()
    const size = viewWriteMessages - 1
    for (let seq = 1; seq <= 3 * size; seq++) {
      const isCommit = seq % size === 0
      feed.add(message({ seq, key: String(seq), batch: `b${Math.ceil(seq / size)}`, isCommit }))
    }
    const found = [feed.next(), feed.next(), feed.next(), feed.next()]
    expect(found.map((piece) => piece?.seq)).toEqual([size, 2 * size, 3 * size, undefined])
    expect(found[1]?.changes.at(0)).toEqual({
      table: "t",
      key: String(size + 1),
      value: `value ${size + 1}`
    })
  })
})
