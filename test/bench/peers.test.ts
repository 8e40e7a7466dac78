/** The peers of the bench: what they send and read, and rows without figures. */
import { describe, expect, it } from "vitest"
import { atLeast, exitCodeOf, notMeasured, withoutTarget } from "./line.ts"
import { binaryArray } from "./peers/postgresql-store.ts"
import { commandOf, replyAt } from "./peers/redis-store.ts"

it("writes an array of PostgreSQL in the form of array_send", () => {
  // select encode(array_send(array['a','bc']), 'hex')
  const hex = ["00000001 00000000 00000019 00000002 00000001", "00000001 61", "00000002 6263"]
  expect(binaryArray("text", [Buffer.from("a"), Buffer.from("bc")]).toString("hex"))
    .toBe(hex.join("").replaceAll(" ", ""))
})

describe("the protocol of Redis", () => {
  it("writes a command, of which each character is a byte", () => {
    const document = Buffer.from("für").toString("latin1")
    expect(Buffer.from(commandOf("XADD", "m", document), "latin1").toString())
      .toBe("*3\r\n$4\r\nXADD\r\n$1\r\nm\r\n$4\r\nfür\r\n")
  })

  it.each([
    ["$15\r\n1700000000000-0\r\n", "1700000000000-0", false],
    [":128\r\n", "128", false],

    ["-MISCONF the disk\r\n", "MISCONF the disk", true]
  ])("reads %j, complete or not", (bytes, text, isError) => {
    for (let length = 0; length < bytes.length; length++) {
      expect(replyAt(bytes.slice(0, length), 0)).toBeUndefined()
    }
    expect(replyAt(`:1\r\n${bytes}:2\r\n`, 4)).toEqual({ text, isError, end: 4 + bytes.length })
  })
})

describe("a peer that cannot be had", () => {
  const met = atLeast("a", 2, 1, "")
  const missed = atLeast("b", 0.5, 1, "")
  const missing = notMeasured("c", new Error("no redis-server:\ninstall it | else"), "none")

  it("is a row with the reason, on one line of a table", () => {
    expect(missing).toMatchObject({ what: "c", target: "none", met: undefined })
    expect(missing.measured)
      .toBe("not measured: Error: no redis-server: install it / else")
  })

  it("gives the exit code 2, before that of a missed target", () => {
    expect(exitCodeOf([met, withoutTarget("d", "1")])).toBe(0)
    expect(exitCodeOf([met, missed])).toBe(1)
    expect(exitCodeOf([missed, missing, met])).toBe(2)
    expect(exitCodeOf([missing])).toBe(2)
  })
})
