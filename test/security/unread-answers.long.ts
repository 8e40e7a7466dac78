/**
 * Clients that read their answers slowly, or not at all. Those that do not read take bounded memory
 * and are disconnected; those that pause and go on get everything.
 */
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { afterAll, afterEach, describe, expect, it } from "vitest"
import { answerCreditMsMax, heldAnswerBytes, heldStreamBytes, networkUnreadBytesMax,
  readerStallMs } from "../../http/limits.ts"
import { metricValue, send } from "../e2e/client.ts"
import { cleanUp, eventually, pause, type Service, start } from "../e2e/process.ts"
import { head } from "../e2e/raw.ts"

const mebibyte = 1024 * 1024
const contentBytes = 16 * mebibyte
const memory = "restante_process_resident_memory_bytes"
/** Longer than the native server waits for a client on its own. */
const stallMs = 25_000
const stalledClients = 2_000
/** Sockets, the heap, and what is not yet collected. */
const besidesBytesMax = 64 * mebibyte
const withinMs = 300_000

const sockets: Array<Socket> = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(cleanUp)

/** A client that has sent the bytes and reads nothing until it is resumed. */
const ask = async (port: number, bytes: string): Promise<Socket> => {
  const socket = connect({ host: "127.0.0.1", port })
  sockets.push(socket)
  socket.on("error", () => undefined)
  socket.pause()
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()))
  socket.write(bytes)
  return socket
}

/** The bytes of the answer, until all have arrived or the connection ends. */
const readAll = (socket: Socket): Promise<number> =>
  new Promise((resolve) => {
    let bytes = 0
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > contentBytes) resolve(bytes)
    })
    socket.on("close", () => resolve(bytes))
    socket.resume()
  })

/** How many connections the server of a port has, those included that it has not accepted yet. */
const connectionsOf = (port: number): number => {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const established = "01"
  return readFileSync("/proc/net/tcp", "utf8").split("\n").filter((line) => {
    const [, address, , state] = line.trim().split(/ +/)
    return address === local && state === established
  }).length
}

/** So many answers of one network have room. */
const heldMax = Math.floor(networkUnreadBytesMax / (heldAnswerBytes + heldStreamBytes))

/**
 * The greatest memory of the service until it has ended the answers that have no room. The clients
 * do not notice that, as they read nothing. A connection more is that of the figure.
 */
const mostMemoryUntilEnded = ({ port, url }: Service): Promise<number> => {
  let most = 0
  return eventually(withinMs, "the answers without room are ended", async () => {
    most = Math.max(most, await metricValue(url, memory))
    return connectionsOf(port) <= heldMax + 1 ? most : undefined
  })
}

const publish = async (url: string): Promise<string> => {
  const answer = await fetch(`${url}/content`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: Buffer.alloc(contentBytes, "a")
  })
  expect(answer.status).toBe(202)
  return new URL(answer.headers.get("location") ?? "", url).pathname
}

describe("an answer that its client does not read", () => {
  it.each([
    ["no field", []],
    ["Connection: close", ["Connection: close"]]
  ])("is sent whole after a long pause, with %s", async (_, fields) => {
    const service = await start()
    const path = await publish(service.url)
    const client = await ask(service.port, head(`GET ${path} HTTP/1.1`, "Host: a", ...fields))
    await pause(stallMs)
    expect(await readAll(client)).toBeGreaterThan(contentBytes)
    await service.stop()
  }, withinMs)

  it(
    "takes bounded memory beside many others, which are ended, and others are served",
    async () => {
      const service = await start()
      const path = await publish(service.url)
      const before = await metricValue(service.url, memory)
      const clients: Array<Socket> = []
      for (let n = 0; n < stalledClients; n += 1) {
        clients.push(await ask(service.port, head(`GET ${path} HTTP/1.1`, "Host: a")))
      }
      const mostBytes = await mostMemoryUntilEnded(service)
      expect(mostBytes - before).toBeLessThan(networkUnreadBytesMax + besidesBytesMax)
      expect((await send(service.url, "/livez")).status).toBe(200)
      // A new reader has room: one that reads nothing gives way.
      expect(await readAll(await ask(service.port, head(`GET ${path} HTTP/1.1`, "Host: a"))))
        .toBeGreaterThan(contentBytes)
      for (const client of clients) client.destroy()
      expect((await service.stop()).code).toBe(0)
    },
    withinMs
  )

  it("ends after the time that its client has for pauses", async () => {
    const service = await start()
    const path = await publish(service.url)
    const client = await ask(service.port, head(`GET ${path} HTTP/1.1`, "Host: a"))
    await pause(readerStallMs + answerCreditMsMax)
    expect(await readAll(client)).toBeLessThan(contentBytes)
    expect((await service.stop()).code).toBe(0)
  }, withinMs)
})
