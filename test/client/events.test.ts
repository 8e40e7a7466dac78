/** The parser of event streams: the rules of WHATWG HTML, and input in arbitrary pieces. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { UnexpectedAnswer } from "../../client/index.ts"
import { eventCharsMax } from "../../client/limits.ts"
import { EventParser, eventsOf, type StreamEvent } from "../../client/notifications.ts"

const parse = (...pieces: ReadonlyArray<string>): ReadonlyArray<StreamEvent> => {
  const parser = new EventParser()
  return pieces.flatMap((piece) => parser.push(piece))
}
const event = (data: string, lastId = "", type = "message"): StreamEvent => ({ type, data, lastId })

it.each<[string, string, ReadonlyArray<StreamEvent>]>([
  ["one event of two lines", "data: YHOO\ndata: +2\ndata: 10\n\n", [event("YHOO\n+2\n10")]],
  [
    "comments, ids and an id that is taken back",
    ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
    [event("first event", "1"), event("second event"), event(" third event")]
  ],
  ["empty data", "data\n\ndata\ndata\n\ndata:", [event(""), event("\n")]],
  ["a space that is skipped", "data:test\n\ndata: test\n\n", [event("test"), event("test")]],
  ["an event that its stream's end cuts off", "data: whole\n\ndata: cut\n", [event("whole")]],
  ["an id that outlives its event", "id: 7\ndata: a\n\ndata: b\n\n", [
    event("a", "7"),
    event("b", "7")
  ]],
  ["an id without data, which counts from then on", "id: 8\n\ndata: b\n\n", [event("b", "8")]],
  ["an id with a null character", "id: 1\0\ndata: a\n\n", [event("a")]],
  ["a type, for one event only", "event: x\ndata: a\n\ndata: b\n\n", [
    event("a", "", "x"),
    event("b")
  ]],
  ["a type without data, which is forgotten", "event: x\n\ndata: b\n\n", [event("b")]],
  ["a field that nobody knows", "hello: x\nworld\ndata: a\n\n", [event("a")]],
  ["a byte order mark", "\ufeffdata: a\n\n", [event("a")]],
  ["each kind of line end", "data: a\r\n\r\ndata: b\r\rdata: c\n\n", [
    event("a"),
    event("b"),
    event("c")
  ]]
])("reads %s", (_, text, events) => {
  expect(parse(text)).toEqual(events)
  expect(parse(...text)).toEqual(events)
})

it("reads the same events wherever the text is split", () => {
  const line = fc.tuple(
    fc.constantFrom("data", "id", "event", "retry", "", "x"),
    fc.constantFrom(":", ": ", ""),
    fc.string({ unit: fc.constantFrom("a", ":", " ", "é", "😀", "\0"), maxLength: 5 }),
    fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n")
  ).map((parts) => parts.join(""))
  const text = fc.array(line, { maxLength: 20 }).map((lines) => lines.join(""))
  const cuts = fc.array(fc.nat(200), { maxLength: 8 })
  fc.assert(
    fc.property(text, cuts, (whole, at) => {
      const places = [0, ...at.map((one) => one % (whole.length + 1)).sort((a, b) => a - b)]
      const pieces = places.map((start, n) => whole.slice(start, places[n + 1] ?? whole.length))
      expect(parse(...pieces)).toEqual(parse(whole))
    }),
    { numRuns: 500 }
  )
})

it("accepts a pause between connections of digits only", () => {
  const parser = new EventParser()
  parser.push("retry: 1500\nretry: 2s\nretry\n")
  expect(parser.retryMs).toBe(1500)
})

it("does not buffer an endless event", () => {
  const half = "x".repeat(eventCharsMax / 2)
  for (const line of [`data: ${half}`, `data: ${half}\n`]) {
    const parser = new EventParser()
    expect(() => {
      for (let n = 0; n < 4; n++) parser.push(line)
    }).toThrow(UnexpectedAnswer)
  }
})

it("joins the bytes of a character, and cancels the stream when the loop ends", async () => {
  const bytes = new TextEncoder().encode("data: 😀\n\ndata: b\n\n")
  let cancelled = false
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
    },
    cancel: () => {
      cancelled = true
    }
  })
  for await (const { data } of eventsOf(stream, new EventParser())) {
    expect(data).toBe("😀")
    break
  }
  expect(cancelled).toBe(true)
})
