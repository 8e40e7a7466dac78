/** What is published in one turn of the event loop goes out together, in order. */
import type { NatsConnection } from "@nats-io/transport-node"
import { afterEach, describe, expect, it, vi } from "vitest"
import { busyInFlight, busyInFlightShare, busyWaitMs,
  turnMessagesMax } from "../../../runtime/limits.ts"
import { TurnWrites } from "../../../runtime/nats/connection/turn-writes.ts"

afterEach(() => void vi.useRealTimers())

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

const make = (inFlight: number) => {
  const published: Array<string> = []
  let isClosed = false
  const connection = {
    info: { max_payload: 100 },
    isClosed: () => isClosed,
    publish: (subject: string) => void published.push(subject)
  }
  // All that it uses of the connection.
  const writes = new TurnWrites(connection as unknown as NatsConnection)
  writes.countInFlight(() => inFlight)
  const close = () => void (isClosed = true)
  return { writes, published, close }
}

it("go out at the end of the turn, with what that publishes", async () => {
  const { published, writes } = make(busyInFlight - 1)
  writes.publish("a", "1")
  writes.atEnd(() => writes.publish("c", "3"))
  writes.publish("b", "2")
  expect(published).toEqual([])
  await nextTurn()
  expect(published).toEqual(["a", "b", "c"])
  expect([writes.messages, writes.writes]).toEqual([3, 1])
})

it("wait for those of later turns while many requests are in flight", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const { published, writes } = make(busyInFlight)
  writes.publish("a", "1")
  await nextTurn()
  expect(published).toEqual([])
  writes.publish("b", "2")
  vi.advanceTimersByTime(busyWaitMs)
  expect(published).toEqual(["a", "b"])
  expect([writes.messages, writes.writes]).toEqual([2, 1])
})

it.each([
  { inFlight: busyInFlight, enough: busyInFlight / busyInFlightShare },
  { inFlight: 100 * turnMessagesMax, enough: turnMessagesMax }
])("wait no longer when there are enough of $inFlight in flight", async ({ enough, inFlight }) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const { published, writes } = make(inFlight)
  for (let n = 1; n < enough; n++) writes.publish(String(n), "")
  await nextTurn()
  expect(published).toEqual([])
  writes.publish("last", "")
  await nextTurn()
  expect(published).toHaveLength(enough)
})

it("count those that the end of the turn will publish", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const { published, writes } = make(busyInFlight)
  writes.atEnd(() => writes.publish("together", ""))
  for (let n = 1; n < busyInFlight / busyInFlightShare; n++) writes.expect()
  await nextTurn()
  expect(published).toEqual([])
  writes.expect()
  await nextTurn()
  expect(published).toEqual(["together"])
})

it("are refused when they are too large, with their headers, or the connection is closed", () => {
  const { close, writes } = make(0)
  const headersText = "NATS/1.0\r\n\r\n"
  writes.publish("a", "x".repeat(100 - headersText.length), { headersText })
  expect(() => writes.publish("a", "x".repeat(101 - headersText.length), { headersText }))
    .toThrow("max_payload")
  expect(() => writes.publish("a", "é".repeat(51))).toThrow("max_payload")
  close()
  expect(() => writes.publish("a", "")).toThrow("closed")
})

it("go out before the connection closes", () => {
  const { published, writes } = make(busyInFlight)
  writes.publish("a", "1")
  writes.flush()
  expect(published).toEqual(["a"])
})

describe("as bytes of the protocol of NATS", () => {
  /** A connection of the client library, with what it writes. */
  const makeWritten = () => {
    const written: Array<Uint8Array> = []
    const protocol = {
      outMsgs: 0,
      outBytes: 0,
      sendCommand: (bytes: Uint8Array) => void written.push(bytes)
    }
    let isClosed = false
    const connection = { info: { max_payload: 1_000 }, isClosed: () => isClosed, protocol }
    const writes = new TurnWrites(connection as unknown as NatsConnection)
    const close = () => void (isClosed = true)
    return { writes, protocol, close, text: () => Buffer.concat(written).toString("latin1") }
  }
  const headersText = "NATS/1.0\r\nA: b\r\n\r\n"

  it.each([
    { name: "a text", data: "hello", publication: {}, bytes: "PUB to 5\r\nhello\r\n" },
    {
      name: "an answer subject",
      data: "",
      publication: { reply: "back" },
      bytes: "PUB to back 0\r\n\r\n"
    },
    {
      name: "headers",
      data: "hello",
      publication: { headersText },
      bytes: `HPUB to 18 23\r\n${headersText}hello\r\n`
    },
    {
      name: "both, and text beyond ASCII",
      data: "é\ud800",
      publication: { headersText, reply: "back" },
      bytes: `HPUB to back 18 23\r\n${headersText}\xc3\xa9\xef\xbf\xbd\r\n`
    },
    {
      name: "bytes",
      data: new Uint8Array([0, 13, 10, 255]),
      publication: { headersText },
      bytes: `HPUB to 18 22\r\n${headersText}\0\r\n\xff\r\n`
    }
  ])("write $name", ({ bytes, data, publication }) => {
    const { protocol, text, writes } = makeWritten()
    writes.publish("before", "1")
    writes.publish("to", data, publication)
    writes.publish("after", "2")
    writes.flush()
    expect(text()).toBe(`PUB before 1\r\n1\r\n${bytes}PUB after 1\r\n2\r\n`)
    expect(writes.messages).toBe(3)
    expect(protocol.outMsgs).toBe(3)
  })

  it.each(["to other", "to\r\nPUB x 0\r\n", "to\t"])("refuse the subject %j", (subject) => {
    const { text, writes } = makeWritten()
    expect(() => writes.publish(subject, "")).toThrow("white space")
    expect(() => writes.publish("to", "", { reply: subject })).toThrow("white space")
    writes.flush()
    expect(text()).toBe("")
  })

  it("write nothing to a connection that has closed meanwhile", () => {
    const { close, text, writes } = makeWritten()
    writes.publish("to", "1")
    close()
    writes.flush()
    expect([text(), writes.messages]).toEqual(["", 0])
  })
})
