/** The first examples of the runtime's README: they are short, and run as it says. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { readFileSync } from "node:fs"
import { afterAll, afterEach, expect, it, vi } from "vitest"
import { embedded } from "../../../runtime/embedded/main.ts"
import { startNode } from "../../../runtime/main.ts"
import { cleanUp, temporaryFolder } from "../../e2e/process.ts"
import { counter } from "./examples/counter.ts"
import { reminder } from "./examples/reminder.ts"
import { program } from "./examples/run.ts"

afterEach(() => void vi.unstubAllEnvs())
afterAll(cleanUp)

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")
const readme = textOf("../../../runtime/README.md")

it.each(["counter.ts", "reminder.ts", "run.ts"])("the README shows %s as it is", (file) => {
  const text = textOf(`examples/${file}`).replaceAll("../../../../runtime/main.ts", "./main.ts")
  expect(readme).toContain("```ts\n" + text + "```")
})

it.each([["counter.ts", 12], ["reminder.ts", 35]])("%s has %i lines of code", (file, linesMax) => {
  const lines = textOf(`examples/${file}`).split("\n").filter((line) => line.trim() !== "")
  expect(lines.length).toBeLessThanOrEqual(linesMax)
})

it("the counter counts", async () => {
  expect(await program()).toBe(5)
})

/** A service that fails the first request. */
const bell = async () => {
  const rung: Array<string> = []
  let requests = 0
  const bodyOf = async (request: IncomingMessage): Promise<string> => {
    let body = ""
    for await (const part of request) body += String(part)
    return body
  }
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      if (++requests > 1) rung.push(`${request.url} ${body}`)
      response.writeHead(requests > 1 ? 204 : 503).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    rung,
    requests: () => requests,
    close: () => new Promise((resolve) => server.close(resolve))
  }
}

it("the reminder survives a failed call and the end of its node", async () => {
  const service = await bell()
  vi.stubEnv("BELL_URL", service.url)
  const folder = temporaryFolder()
  const first = await startNode({ actors: [counter, reminder], store: embedded(folder) })
  const atMs = Date.now()
  expect(await first.ask(reminder("tea"), { _tag: "Remind", text: "It is ready", atMs }))
    .toBe("It will ring")
  await expect.poll(service.requests).toBe(1)
  await first.stop()
  const second = await startNode({ actors: [counter, reminder], store: embedded(folder) })
  await expect.poll(() => service.rung).toEqual(["/tea It is ready"])
  await second.stop()
  await service.close()
})
