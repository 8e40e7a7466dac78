/** The progress line of `send --wait` and `outbox show --watch`. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { NotificationProgress, Recipient } from "../../client/index.ts"
import { expectDelivered, ProgressLine, progressText } from "../../deploy/cli/delivery-progress.ts"
import { plain, progressLine, table } from "../../deploy/cli/terminal.ts"

const nowMs = Date.parse("2026-01-01T00:00:00Z")

const afterMs = (ms: number): string => new Date(nowMs + ms).toISOString()

const recipient = (status: Recipient["status"], nextMs?: number): Recipient => ({
  status,
  href: "http://a.test/",
  attempts: 1,
  last: undefined,
  next: nextMs === undefined ? undefined : afterMs(nextMs),
  code: undefined,
  location: undefined,
  problem: undefined,
  paused: undefined
})

const notification = (...recipients: ReadonlyArray<Recipient>): NotificationProgress => ({
  href: "http://post.test/outgoing/a/b",
  time: afterMs(0),
  status: "waiting",
  replaced: undefined,
  withdrawn: undefined,
  recipients,
  etag: undefined
})

const delivered = [recipient("success"), recipient("success"), recipient("success")]

/** A screen that records its output. */
const screen = (isTerminal: boolean) => {
  const written: Array<string> = []
  return { written, line: new ProgressLine({ write: (text) => written.push(text), isTerminal }) }
}

describe("the progress line", () => {
  it.each([
    [
      [...delivered, recipient("retry", 11_500), recipient("failed")],
      "3 of 5 delivered, 1 retrying, 1 failed · next attempt in 12 s"
    ],
    [[recipient("waiting"), recipient("waiting", 0)], "0 of 2 delivered, 2 waiting"],
    [
      [recipient("retry", 7_200_000), recipient("retry", 300_000)],
      "0 of 2 delivered, 2 retrying · next attempt in 5 min"
    ],
    [
      [recipient("retry", 36_000_000)],
      "0 of 1 delivered, 1 retrying · next attempt in 10 h"
    ],
    [delivered, "3 of 3 delivered"],
    // A notification that has ended has no next attempt.
    [[recipient("failed", 60_000)], "0 of 1 delivered, 1 failed"]
  ])("shows the counts, and the time of the next attempt", (recipients, text) => {
    expect(progressText(notification(...recipients), nowMs)).toBe(text)
  })

  it("is rewritten on a terminal while time passes", () => {
    const { line, written } = screen(true)
    line.show(notification(recipient("retry", 2_000)), nowMs)
    line.tick(nowMs + 1_000)
    line.show(notification(recipient("success")), nowMs + 2_000)
    line.end()
    expect(written).toEqual([
      "\r\x1b[K0 of 1 delivered, 1 retrying · next attempt in 2 s",
      "\r\x1b[K0 of 1 delivered, 1 retrying · next attempt in 1 s",
      "\r\x1b[K1 of 1 delivered",
      "\n"
    ])
  })

  it("is written once for each change elsewhere", () => {
    const { line, written } = screen(false)
    const retrying = notification(recipient("retry", 2_000))
    line.show(retrying, nowMs)
    line.show(retrying, nowMs + 1_000)
    line.tick(nowMs + 1_000)
    line.show(undefined, nowMs + 1_000)
    line.show(undefined, nowMs + 1_500)
    line.show(notification(recipient("success")), nowMs + 2_000)
    line.end()
    expect(written).toEqual([
      "0 of 1 delivered, 1 retrying · next attempt in 2 s\n",
      "the service does not respond; retrying\n",
      "1 of 1 delivered\n"
    ])
  })

  it("names only some of many failed recipients", async () => {
    const lost = Array.from({ length: 25 }, () => recipient("failed"))
    const { message } = await Effect.runPromise(Effect.flip(expectDelivered(notification(...lost))))
    expect(message.split("\n")).toHaveLength(23)
    expect(message).toMatch(/\nand 5 more\ncorrect what failed, then retry [^\n]+$/)
  })
})

describe("what is printed", () => {
  it("has no text that controls a terminal", () => {
    expect(plain("a\x1b[31m\r\n\u009b\u2028\u202eb ü 😀")).toBe("a [31m b ü 😀")
  })

  it("has columns of the necessary width", () => {
    expect(table([["A", "LONG"], ["long", "a"]])).toBe("A     LONG\nlong  a")
  })
})

describe("the progress of a long command", () => {
  /** What is written when it is shown at these times, in seconds. */
  const shownAt = (isTerminal: boolean, seconds: ReadonlyArray<number>): ReadonlyArray<string> => {
    const written: Array<string> = []
    let nowMs = 0
    const target = { write: (text: string) => written.push(text), isTerminal }
    const line = progressLine(100, target, () => nowMs)
    for (const second of seconds) {
      nowMs = second * 1_000
      line.show(() => `${second} s`)
    }
    line.clear()
    return written
  }

  it("overwrites its line on a terminal", () => {
    expect(shownAt(true, [0, 0.05, 0.1]))
      .toEqual(["\r\x1b[K0 s", "\r\x1b[K0.1 s", "\r\x1b[K"])
  })

  it("is a line every 10 s elsewhere, and none for a short command", () => {
    expect(shownAt(false, [0, 9.9])).toEqual([])
    expect(shownAt(false, [1, 10, 19.9, 25])).toEqual(["10 s\n", "25 s\n"])
  })
})
