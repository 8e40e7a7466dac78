/** The programs in Python and Go talk to a counter by the HTTP face. Nothing is skipped. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { toolOf } from "../../deploy/tools.ts"
import { blocksOf, root } from "../../docs/pages.ts"
import { cleanUp, temporaryFolder } from "../../e2e/process.ts"
import { endPrograms, type Program, runProgram } from "../../foreign/program.ts"
import { handler, node } from "./examples/face.ts"
import { serverOf } from "./examples/server.ts"

/** A first build of Go's own library for HTTP takes minutes on a slow machine. */
const builtWithinMs = 600_000

const folder = temporaryFolder()
const python = join(root, "runtime/http/python/counter.py")
const go = join(root, "runtime/http/go/counter.go")
const program = join(folder, "counter")
const servers: Array<Server> = []

const listening = async (server: Server): Promise<string> => {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

let url = ""

beforeAll(async () => {
  toolOf("python3")
  toolOf("go", "golang-go")
  url = await listening(serverOf(handler))
  const built = await runProgram("go", ["build", "-o", program, go], {
    cwd: folder,
    withinMs: builtWithinMs
  })
  expect([built.code, built.errors]).toEqual([0, ""])
}, builtWithinMs)

afterAll(async () => {
  endPrograms()
  for (const server of servers) server.closeAllConnections()
  await node.stop()
  cleanUp()
})

interface Talk {
  readonly at?: string
  readonly token?: string
  readonly name?: string
}

const languages: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
  ["Python", "python3", [python]],
  ["Go", program, []]
]

it("are formatted, as Go formats them", async () => {
  const { code, output } = await runProgram("gofmt", ["-l", go], {
    cwd: folder,
    withinMs: builtWithinMs
  })
  expect([code, output]).toEqual([0, ""])
})

it("run by the commands of the README", async () => {
  const [commands = ""] = blocksOf("runtime/http/README.md")
    .filter(({ language }) => language === "sh").map(({ text }) => text)
  const script = commands.replace("http://localhost:8080", url)
  expect(script).not.toBe(commands)
  const { code, output } = await runProgram("bash", ["-ec", script], {
    cwd: root,
    withinMs: builtWithinMs
  })
  const counts = [...output.matchAll(/^added: (\d+) read: \1$/gm)].map(([, count]) => Number(count))
  expect([code, counts]).toEqual([0, [expect.any(Number), (counts[0] ?? 0) + 3]])
})

describe.each(languages)("in %s", (_, command, before) => {
  const talk = (
    { at = url, name = "alice", token = "alices-token" }: Talk,
    by = "3"
  ): Promise<Program> =>
    runProgram(command, [...before, name, by], {
      cwd: folder,
      env: { ACTORS_URL: at, ACTORS_TOKEN: token },
      withinMs: builtWithinMs
    })

  it("adds to a counter, and reads it", async () => {
    const before = await handler(
      new Request(`${url}/actors/counter/alice`, {
        headers: { authorization: "Bearer alices-token" }
      })
    )
    const count = Number(await before.text())
    const { code, output } = await talk({})
    expect([code, output]).toEqual([0, `added: ${count + 3} read: ${count + 3}\n`])
  })

  it("says what a problem is, and whether anything changed", async () => {
    const ends = [
      await talk({ name: "bob" }),
      await talk({ token: "wrong" }),
      await talk({ name: "a/b" }),
      await talk({}, "10000000000000000000")
    ]
    const errors = ends.map(({ code, errors }) => `${code} ${errors}`)
    expect(errors).toEqual([
      expect.stringMatching(/^1 .*403.*, unchanged: The caller may not do this: ask/),
      expect.stringMatching(/^1 .*401.*, unchanged: The request does not say who sends it/),
      expect.stringMatching(/^1 .*404.*, unchanged: No actor has this id: use 1 to 200/),
      expect.stringMatching(/^1 .*422.*, unchanged: counter does not take this message: .*integer/)
    ])
  })

  it("repeats a message after 503, and not after 504 or an answer of others", async () => {
    const statuses: Array<number> = []
    const answers = [503, 503, 200, 200, 504, 502]
    const at = await listening(createServer((incoming, outgoing) => {
      incoming.resume()
      const status = answers[statuses.length] ?? 500
      statuses.push(status)
      const outcome = status === 503 ? "unchanged" : "indeterminate"
      outgoing.writeHead(status, {
        "content-type": status === 502 ? "text/html" : "application/problem+json",
        "retry-after": "1"
      })
      outgoing.end(status === 200 ? "7" : JSON.stringify({ detail: "planted", outcome }))
    }))
    expect([(await talk({ at })).output, statuses]).toEqual([
      "added: 7 read: 7\n",
      [503, 503, 200, 200]
    ])
    expect((await talk({ at })).errors).toMatch(/504.*, indeterminate: planted/)
    expect((await talk({ at })).errors).toMatch(/502.*, indeterminate: /)
    expect(statuses).toEqual(answers)
  })

  it("fails when there is no service", async () => {
    const { code, errors } = await talk({ at: "http://127.0.0.1:9" })
    expect([code, errors]).toEqual([1, expect.stringMatching(/refused/)])
  })
})
