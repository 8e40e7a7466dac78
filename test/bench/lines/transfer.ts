/** A content resource of 1 GiB, uploaded (A1) and downloaded (A3), in bounded memory. */
import { createHash, type Hash } from "node:crypto"
import { request } from "node:http"
import { Readable } from "node:stream"
import { atMost, type Line } from "../line.ts"

const mebibyte = 2 ** 20
const sizeMebibytes = 1024

const block = (n: number): Buffer => {
  const bytes = Buffer.alloc(mebibyte, `block ${n} of the content; `)
  bytes.writeUInt32BE(n)
  return bytes
}

function* blocks(hash: Hash): Generator<Buffer> {
  for (let n = 0; n < sizeMebibytes; n++) {
    const bytes = block(n)
    hash.update(bytes)
    yield bytes
  }
}

const upload = (origin: string, hash: Hash): Promise<string> =>
  new Promise((resolve, reject) => {
    const sending = request(`${origin}/content`, {
      method: "POST",
      headers: {
        "Content-Type": "application/octet-stream",
        "Content-Length": sizeMebibytes * mebibyte
      }
    }, (answer) => {
      answer.resume()
      const { location } = answer.headers
      if (answer.statusCode === 202 && location !== undefined) resolve(location)
      else reject(new Error(`the upload was answered ${answer.statusCode}`))
    })
    sending.once("error", reject)
    Readable.from(blocks(hash), { objectMode: false, highWaterMark: mebibyte }).pipe(sending)
  })

const download = (uri: string, hash: Hash): Promise<void> =>
  new Promise((resolve, reject) => {
    request(uri, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`))
      answer.on("data", (chunk: Buffer) => hash.update(chunk))
      answer.once("end", resolve)
      answer.once("error", reject)
    }).once("error", reject).end()
  })

const rate = (elapsedMs: number): string =>
  `${Math.round(sizeMebibytes / elapsedMs * 1000)} MiB a second`

export const transfer: Line = {
  name: "transfer",
  run: async (bench) => {
    const node = await bench.serve(bench.folder("transfer"))
    const before = node.memory()
    const sent = createHash("sha256")
    const received = createHash("sha256")
    node.resetPeak()
    let startedMs = performance.now()
    const location = await upload(node.origin, sent)
    const upMs = performance.now() - startedMs
    const up = node.memory().peak - before.resident
    node.resetPeak()
    startedMs = performance.now()
    await download(location.replace(/^https?:\/\/[^/]+/, node.origin), received)
    const downMs = performance.now() - startedMs
    const down = node.memory().peak - before.resident
    await node.stop()
    if (sent.digest("hex") !== received.digest("hex")) throw new Error("other bytes came back")
    const above = `peak above the ${before.resident.toFixed(0)} MB of the fresh process`
    return [
      atMost(`upload of ${sizeMebibytes} MiB: ${above}`, up, 60, "MB", rate(upMs)),
      atMost(`download of the same: ${above}`, down, 60, "MB", rate(downMs))
    ]
  }
}
