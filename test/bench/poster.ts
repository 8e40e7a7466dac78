/**
 * undici alone: posts a number of documents to one origin, over as many connections as the service
 * would use, and prints the time in ms. It stores and checks nothing.
 */
import { Agent } from "undici"

const [origin = "", count = "0", bytes = "0", connections = "8"] = process.argv.slice(2)

const agent = new Agent({ connections: Number(connections), pipelining: 1 })
const head = "<notification><item><description>"
const tail = "</description><url>http://sender.test/m</url></item></notification>"
const document = head + "x".repeat(Math.max(0, Number(bytes) - head.length - tail.length)) + tail
/** Requests that wait for a connection, beside those in flight. */
const ahead = 2

const post = async (n: number): Promise<void> => {
  const { body, statusCode } = await agent.request({
    origin,
    path: `/inbox/${n}`,
    method: "POST",
    headers: {
      "content-type": "text/xml+rss; charset=utf-8",
      "idempotency-key": `"document-${n}-of-the-poster-alone"`
    },
    body: document
  })
  await body.dump()
  if (statusCode !== 202) throw new Error(`answered ${statusCode}`)
}

let next = 0
const one = async (): Promise<void> => {
  while (next < Number(count)) await post(next++)
}
const startedMs = performance.now()
await Promise.all(Array.from({ length: Number(connections) * ahead }, one))
process.stdout.write(String(performance.now() - startedMs))
await agent.close()
