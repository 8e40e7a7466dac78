/** A client that sends faster than its bytes are written, on a real socket of the native server. */
import { Worker } from "node:worker_threads"
import { tmpdir } from "node:os"
import { setImmediate } from "node:timers/promises"
import { expect, it, onTestFinished } from "vitest"
import type { Exchange } from "../../http/wire/exchange.ts"
import { listen } from "../../http/wire/server.ts"
import type { SpillSettings, Upload } from "../../http/wire/uploads/index.ts"

const mebibyte = 1024 * 1024

const bodyBytes = 200 * mebibyte

const pieceMs = 4

/** Sends a whole body as fast as the socket takes it, and reports what it received at the end. */
const client = `
  const { connect } = require("node:net")
  const { parentPort, workerData: { bodyBytes, port } } = require("node:worker_threads")
  const socket = connect(port, "127.0.0.1")
  const piece = Buffer.alloc(1024 * 1024, "x")
  let received = ""
  let sent = 0
  const send = () => {
    while (sent < bodyBytes) {
      sent += piece.length
      if (!socket.write(piece)) return socket.once("drain", send)
    }
  }
  socket.on("data", (data) => received += data).on("error", () => {})
  socket.on("close", () => parentPort.postMessage(received))
  socket.write("POST / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n" +
    "Content-Length: " + bodyBytes + "\\r\\n\\r\\n")
  send()
`

/** Takes as long for each piece as a disk: meanwhile the client fills the socket. */
const slowDown = (upload: Upload, late: Array<number>): Upload => {
  const receive = upload.receive.bind(upload)
  const never = new Int32Array(new SharedArrayBuffer(4))
  upload.receive = (chunk, isLast) => {
    if (upload.destroyed) late.push(chunk.byteLength)
    Atomics.wait(never, 0, 0, pieceMs)
    receive(chunk, isLast)
  }
  return upload
}

const receive = async (
  exchange: Exchange,
  ended: Array<string>,
  late: Array<number>
): Promise<void> => {
  let bytes = 0
  try {
    const upload = slowDown(exchange.stream(bodyBytes, () => "192.0.2.0/24"), late)
    for await (const piece of upload) {
      bytes += piece.length
      await setImmediate()
    }
    ended.push(`${bytes} bytes`)
  } catch (error) {
    ended.push(String(error))
  }
  exchange.reply({ status: 202, headers: [], body: "" })
}

/** How an upload ended for its reader, what came after that, what its client received; errors. */
const upload = async (turn: SpillSettings["turn"]) => {
  const ended: Array<string> = []
  const errors: Array<unknown> = []
  const late: Array<number> = []
  const server = await listen({
    host: "127.0.0.1",
    port: 0,
    handler: (_, exchange) => void receive(exchange, ended, late),
    baseUrl: "http://h",
    onError: (error) => errors.push(error),
    corsOrigin: "*",
    spills: { path: tmpdir(), bytesMax: 4 * bodyBytes, turn }
  })
  onTestFinished(() => server.drain(0))
  const worker = new Worker(client, { eval: true, workerData: { bodyBytes, port: server.port } })
  const received = await new Promise<string>((resolve, reject) => {
    worker.on("message", resolve).on("error", reject)
  })
  return { ended, errors, late, received }
}

it("is stored while it holds the event loop for less than the limit", async () => {
  const { ended, errors, received } = await upload({ bytesMax: bodyBytes, ms: 0 })
  expect([ended, errors]).toEqual([[`${bodyBytes} bytes`], []])
  expect(received).toContain("HTTP/1.1 202 ")
}, 120_000)

it("loses its connection when it holds the event loop for longer", async () => {
  const { ended, errors, late, received } = await upload({ bytesMax: 2 * mebibyte, ms: 0 })
  await expect.poll(() => ended).toEqual(["Error: the request body: Aborted"])
  expect(String(errors)).toContain("bytes in one turn of the event loop")
  // The native server reads nothing more, although the client sends on.
  expect([late, received]).toEqual([[], ""])
}, 120_000)
