/** Answers that their clients do not read, on real sockets, in a server with a small budget. */
import { connect, type Socket } from "node:net"
import { afterEach, expect, it } from "vitest"
import { heldAnswerBytes, heldStreamBytes } from "../../http/limits.ts"
import { UnreadBudget } from "../../http/wire/answers/index.ts"
import { eventText } from "../../http/wire/event-stream.ts"
import { listen, type Server } from "../../http/wire/server.ts"

const mebibyte = 1024 * 1024
/** More than the socket's buffers of both sides take together. */
const body = Buffer.alloc(16 * mebibyte, "a")
const event = body.toString()
const small = Buffer.alloc(32 * 1024, "a")
/** So many small answers are more than the socket takes. */
const smallMax = 1_000
const room = 2 * (body.length + heldAnswerBytes)

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < 256; n += 1) yield body.subarray(0, 64 * 1024)
}

let server: Server | undefined
let answered = 0
const sockets: Array<Socket> = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server?.drain(100)
})

/** A server whose clients name their network, if it is another than the first one. */
const serve = async (budget: UnreadBudget) => {
  const running = await listen({
    host: "127.0.0.1",
    port: 0,
    baseUrl: "http://h",
    onError: () => undefined,
    corsOrigin: "*",
    unread: budget,
    networkOf: ({ headers }) => headers.get("x-network") ?? "a",
    handler: ({ path }, exchange) => {
      if (path === "/stream") void exchange.replyStream(200, [], body.length, pieces())
      else if (path === "/events") exchange.events([])?.send(eventText({ data: event }))
      else {
        const sent = path === "/shared" ? body : path === "/own" ? Buffer.from(body) : small
        answered += 1
        exchange.reply({ status: 200, headers: [], body: sent })
      }
    }
  })
  server = running
  answered = 0
  return running
}

/** A client that has sent a request and reads nothing until it is resumed. */
const ask = async (port: number, path: string, fields = ""): Promise<Socket> => {
  const socket = connect({ host: "127.0.0.1", port })
  sockets.push(socket)
  socket.on("error", () => undefined)
  socket.pause()
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
  return socket
}

/** The bytes until the length of the answer has arrived, or the connection ends. */
const readAll = (socket: Socket): Promise<number> =>
  new Promise((resolve) => {
    let bytes = 0
    const done = () => resolve(bytes)
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > body.length) done()
    })
    socket.on("close", done)
    socket.resume()
  })

it("hold one body together, and get all of it when they are read", async () => {
  const budget = new UnreadBudget({ totalBytesMax: room, networkBytesMax: room })
  const { inFlight, port } = await serve(budget)
  const clients = await Promise.all(Array.from({ length: 20 }, () => ask(port, "/shared")))
  await expect.poll(() => budget.size).toBe(20)
  expect(budget.bytes).toBe(body.length + 20 * heldAnswerBytes)
  expect(inFlight()).toBe(20)
  for (const bytes of await Promise.all(clients.map(readAll))) {
    expect(bytes).toBeGreaterThan(body.length)
  }
  expect([budget.size, budget.bytes, inFlight()]).toEqual([0, 0, 0])
})

it("beyond the budget are ended, and those of other networks are not", async () => {
  const budget = new UnreadBudget({ totalBytesMax: 2 * room, networkBytesMax: room })
  const { port } = await serve(budget)
  const other = await ask(port, "/own", "X-Network: b\r\n")
  await expect.poll(() => budget.size).toBe(1)
  const clients: Array<Socket> = []
  for (let n = 0; n < 10; n += 1) clients.push(await ask(port, "/own"))
  await expect.poll(() => clients.filter(({ readyState }) => readyState === "closed").length)
    .toBe(0)
  await expect.poll(() => budget.bytes).toBe(3 * (body.length + heldAnswerBytes))
  const read = await Promise.all(clients.map(readAll))
  expect(read.filter((bytes) => bytes > body.length)).toHaveLength(2)
  expect(await readAll(other)).toBeGreaterThan(body.length)
  expect(budget.bytes).toBe(0)
})

it("count a streamed answer by what it holds", async () => {
  const each = heldAnswerBytes + heldStreamBytes
  const budget = new UnreadBudget({ totalBytesMax: 5 * each, networkBytesMax: 5 * each })
  const { port } = await serve(budget)
  const clients: Array<Socket> = []
  for (let n = 0; n < 12; n += 1) clients.push(await ask(port, "/stream"))
  await expect.poll(() => budget.bytes).toBe(5 * each)
  const read = await Promise.all(clients.map(readAll))
  expect(read.filter((bytes) => bytes > body.length).length).toBe(5)
  await expect.poll(() => [budget.size, budget.bytes]).toEqual([0, 0])
})

it("are sent whole to a client whose connection ends with them", async () => {
  const budget = new UnreadBudget()
  const { port } = await serve(budget)
  for (const path of ["/shared", "/stream"]) {
    const client = await ask(port, path, "Connection: close\r\n")
    await expect.poll(() => budget.size).toBe(1)
    expect(await readAll(client)).toBeGreaterThan(body.length)
    client.destroy()
    await expect.poll(() => budget.size).toBe(0)
  }
})

it("end a connection that sends requests on and reads no answer", async () => {
  const budget = new UnreadBudget()
  const { inFlight, port } = await serve(budget)
  const client = await ask(port, "/small")
  let sent = 1
  const ended = new Promise<void>((resolve) => client.once("close", () => resolve()))
  // More than the socket takes. The service answers each of them before the next one arrives.
  while (sent < smallMax && budget.size === 0) {
    client.write("GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
    sent += 1
    await expect.poll(() => answered, { interval: 1 }).toBe(sent)
  }
  expect(sent).toBeLessThan(smallMax)
  expect(budget.bytes).toBe(small.length + heldAnswerBytes)
  client.write("GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
  await expect.poll(() => [budget.size, inFlight()]).toEqual([0, 0])
  client.resume()
  await ended
})

it("count what waits in event streams, until it is read", async () => {
  const budget = new UnreadBudget({ totalBytesMax: 2 * room, networkBytesMax: room + mebibyte })
  const { port } = await serve(budget)
  const clients: Array<Socket> = []
  for (let n = 0; n < 6; n += 1) clients.push(await ask(port, "/events"))
  await expect.poll(() => budget.size).toBe(2)
  expect(budget.bytes).toBeGreaterThan(2 * body.length)
  const read = await Promise.all(clients.map(readAll))
  expect(read.filter((bytes) => bytes > body.length)).toHaveLength(2)
  await expect.poll(() => [budget.size, budget.bytes]).toEqual([0, 0])
})
