/** The examples of the README of the HTTP face: on a server of Node, with real connections. */
import { readFileSync } from "node:fs"
import type { Server } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expose, httpFace } from "../../../runtime/http/index.ts"
import { memory, startNode } from "../../../runtime/main.ts"
import { blocksOf } from "../../docs/pages.ts"
import { runProgram } from "../../foreign/program.ts"
import { room } from "./actors.ts"
import { handler, node } from "./examples/face.ts"
import { serverOf } from "./examples/server.ts"

const page = "runtime/http/README.md"
const runWithinMs = 60_000

let server: Server
let port = 0
let url = ""

beforeAll(async () => {
  server = serverOf(handler)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address of this form.
  port = (server.address() as AddressInfo).port
  url = `http://127.0.0.1:${port}`
})

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve))
  await node.stop()
})

const authorization = "Bearer alices-token"
const headers = { authorization, "content-type": "application/json" }

/** What the server writes to these bytes, until it ends the connection or `until` matches. */
const exchanged = (bytes: string, until: RegExp, at = port): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect(at, "127.0.0.1", () => socket.write(bytes))
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part
      if (until.test(text)) socket.destroy()
    })
    socket.on("error", reject).on("close", () => resolve(text))
  })

describe("the README of the HTTP face", () => {
  const readme = readFileSync(new URL("../../../runtime/http/README.md", import.meta.url), "utf8")

  it.each(["face.ts", "server.ts"])("shows examples/%s as it is", (file) => {
    const text = readFileSync(new URL(`examples/${file}`, import.meta.url), "utf8")
      .replace("../../../../runtime/main.ts", "../main.ts")
      .replace("../../../../runtime/http/", "./")
    expect(readme).toContain("```ts\n" + text + "```")
  })

  it("shows commands of curl, which print what it shows", async () => {
    const transcripts = blocksOf(page).filter(({ language }) => language === "console")
    const steps = transcripts.flatMap(({ text }) => text.split(/^\$ /m).slice(1)).map((step) => {
      const [, command = "", shown = ""] = /^((?:.*\\\n)*.*\n)([^]*)$/.exec(step) ?? []
      return { command: command.replaceAll("http://localhost:8080", url), shown }
    })
    expect(steps.length).toBeGreaterThan(3)
    for (const { command, shown } of steps) {
      const program = await runProgram("bash", ["-c", command], { cwd: "/", withinMs: runWithinMs })
      expect([command, program.errors, `${program.output.trimEnd()}\n`]).toEqual([
        command,
        "",
        shown
      ])
    }
  })
})

describe("on a server of Node", () => {
  const alice = "/actors/counter/alice"

  it("answers requests, each by its own bytes, on one connection", async () => {
    const body = JSON.stringify({ _tag: "Add", by: 0 })
    const post = (path: string, text: string) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
    const requests = [
      post(alice, body),
      // Nobody reads these bodies.
      post("/nothing", "x".repeat(100_000)),
      post(alice, "x".repeat(100_000)),
      `GET ${alice} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `HEAD ${alice} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`,
      `OPTIONS ${alice} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    ]
    const text = await exchanged(requests.join(""), /never/)
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(statuses).toEqual(["200", "404", "413", "401", "200", "204"])
  })

  it("answers 413 to a body without an end, and ends the connection", async () => {
    // One byte too many, and no end: the server has read all of it when it answers.
    const part = `10001\r\n${"x".repeat(0x10001)}`
    const head = `POST ${alice} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n` +
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    const text = await exchanged(head + part, /never/)
    expect(text).toMatch(/^HTTP\/1\.1 413 [^]*Connection: close/i)
  })

  it("answers 400 to what the web has no request for", async () => {
    for (const line of ["TRACE / HTTP/1.1", "GET //:x/ HTTP/1.1"]) {
      const text = await exchanged(`${line}\r\nHost: a\r\nConnection: close\r\n\r\n`, /never/)
      expect(text).toMatch(/^HTTP\/1\.1 400 /)
    }
    expect((await fetch(url + alice, { headers })).status).toBe(200)
  })

  it("takes the path of a request to a proxy, and no other host of it", async () => {
    for (const target of [`http://evil.test${alice}`, `//evil.test${alice}`]) {
      const text = await exchanged(
        `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n` +
          "Connection: close\r\n\r\n",
        /never/
      )
      expect(text).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  it("ends the log that a client follows when it leaves", async () => {
    const own = await startNode({ actors: [room], store: memory() })
    await own.ask(room("lobby"), { _tag: "Post", text: "one" })
    const face = httpFace(own, {
      actors: [expose(room, { log: true })],
      authorize: () => true,
      logStreamsMax: 1
    })
    const logs = serverOf(face)
    await new Promise<void>((resolve) => logs.listen(0, "127.0.0.1", resolve))
    const path = "/actors/chat-room/lobby/log"
    for (let time = 0; time < 3; time++) {
      // As above.
      const { port } = logs.address() as AddressInfo
      await expect.poll(() =>
        exchanged(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, /id: 1\n|503/, port)
      ).toContain("id: 1\n")
    }
    await new Promise((resolve) => logs.close(resolve))
    await own.stop()
  })

  it("survives clients that leave early", async () => {
    const head = `POST ${alice} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`
    await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write(`${head}Content-Length: 50\r\n\r\n{"_tag"`, () => socket.destroy())
      })
      socket.on("close", resolve)
    })
    const answer = await fetch(url + alice, { headers })
    expect(answer.status).toBe(200)
  })
})
