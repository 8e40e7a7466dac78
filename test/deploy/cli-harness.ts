/** The built command line as a process, with receivers, and services that are not real. */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { adminToken, cleanUp, publicUrl } from "../e2e/process.ts"
import { closeReceivers, receiver } from "../e2e/receivers.ts"

const main = fileURLToPath(new URL("../../dist/bin/restante.js", import.meta.url))

/** What is waited for comes within it. */
export const withinMs = 120_000

/** How a command ended. */
export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs, with what it has written so far. */
export interface Run {
  readonly child: ChildProcess
  readonly shown: { stdout: string; stderr: string }
  readonly ended: Promise<Ran>
}

const children = new Set<ChildProcess>()

export type Environment = Readonly<Record<string, string>>

/** A command as the admin; its service is `BASE_URL` of the environment. */
export const run = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Run => {
  const child = spawn(process.execPath, [main, ...args], {
    env: {
      PATH: process.env["PATH"] ?? "",
      RESTANTE_TOKEN: adminToken,
      ...env
    },
    stdio: ["pipe", "pipe", "pipe"]
  })
  children.add(child)
  const shown = { stdout: "", stderr: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => (shown.stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (shown.stderr += text))
  child.stdin.on("error", () => {}) // it need not read its input
  child.stdin.end(input)
  const ended = new Promise<Ran>((resolve) => {
    child.on("close", (status) => {
      children.delete(child)
      resolve({ status, ...shown })
    })
  })
  return { child, shown, ended }
}

/** Ends what this file started: for `afterAll`. */
export const endCommands = (): void => {
  for (const child of children) child.kill("SIGKILL")
  closeReceivers()
  cleanUp()
}

/** What the receiver got, by path. */
export const bodies = new Map<string, Array<string>>()

export const bodyAt = (path: string): string => bodies.get(path)?.[0] ?? ""

/** `/503-1/…` answers 503 once and then 202; `/404/…` always 404; all else 202. */
const answerOf = (path: string, count: number): number => {
  const [, status = "202", times] = /^\/(\d{3})(?:-(\d+))?\//.exec(path) ?? []
  return times !== undefined && count > Number(times) ? 202 : Number(status)
}

/** Where other services have their mailboxes: any path is one. */
export const startOther = (): Promise<string> =>
  receiver(({ body, path }, response) => {
    const got = [...(bodies.get(path) ?? []), body]
    bodies.set(path, got)
    response.writeHead(answerOf(path, got.length), { Location: "/stored" }).end()
  })

/** A service that may reach the receivers, and gives up soon. */
export const serviceEnv: Environment = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: "0,200ms,200ms"
}

/** What `send` prints. */
export const uriPattern = new RegExp(`^${publicUrl}/outgoing/admin/[\\w-]+\\n$`)

export type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** Runs a command with a service that answers so, and tells the requests. */
export const withFake = async (answer: Answering, args: ReadonlyArray<string>) => {
  const requests: Array<string> = []
  const fake = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    request.resume().on("end", () => {
      if (request.url !== "/outgoing") return answer(request, response)
      response.writeHead(303, { location: `${publicUrl}/outgoing/bob` }).end()
    })
  })
  await new Promise<void>((resolve) => fake.listen(0, "127.0.0.1", resolve))
  const { port } = fake.address() as AddressInfo // a TCP server's address is an object
  const ran = await run(args, { BASE_URL: `http://127.0.0.1:${port}` }, "poem").ended
  fake.close()
  return { ...ran, requests }
}
