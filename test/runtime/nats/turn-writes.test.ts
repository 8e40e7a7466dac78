/** What is published in one turn of the event loop goes out together, in order. */
import type { NatsConnection } from "@nats-io/transport-node"
import { afterEach, expect, it, vi } from "vitest"
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
