/** uWebSockets.js without the service, for the servers that the service is compared with. */
import { createRequire } from "node:module"
// oxlint-disable-next-line no-restricted-imports -- the peers are this library and nothing else
import type { HttpResponse } from "uws-node-20-22"

type Native = typeof import("uws-node-20-22")

// `require` is untyped; the module's own declarations describe its result.
export const native = createRequire(import.meta.url)("uws-node-20-22") as Native

/** Reads a body to its end; `aborted`: the client is gone, and the response is no longer valid. */
export const read = (
  response: HttpResponse,
  done: (body: Buffer) => void,
  aborted: () => void = () => {}
): void => {
  const chunks: Array<Buffer> = []
  response.onAborted(aborted)
  response.onData((chunk, isLast) => {
    // The native module reuses the memory of the chunk after this function returns.
    chunks.push(Buffer.from(chunk.slice(0)))
    if (isLast) done(chunks.length === 1 ? chunks[0] ?? Buffer.alloc(0) : Buffer.concat(chunks))
  })
}

/** Listens on loopback. Ends the process when the port is taken. */
export const listen = (app: ReturnType<Native["App"]>, port: number): void => {
  app.listen("127.0.0.1", port, (socket) => {
    if (socket === false) process.exit(1)
  })
}
