/** Runs the built command line as a process, with receivers and fake services. */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { adminToken, cleanUp, publicUrl, temporaryFolder } from "../e2e/process.ts"
import { closeReceivers, receiver } from "../e2e/receivers.ts"

const main = fileURLToPath(new URL("../../dist/bin/restante.js", import.meta.url))

/** Limit of a wait. */
export const withinMs = 120_000

/** The result of a command. */
export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A running command, with its output so far. */
export interface Run {
  readonly child: ChildProcess
  readonly output: { stdout: string; stderr: string }
  readonly ended: Promise<Ran>
}

/** A new file with this text, such as that of a secret. */
export const fileWith = (text: string): string => {
  const file = join(temporaryFolder(), "text")
  writeFileSync(file, text)
  return file
}

const children = new Set<ChildProcess>()

export type Environment = Readonly<Record<string, string>>

/** A folder of configuration without contexts: a developer's own would change the commands. */
const noContexts = temporaryFolder()

/** Runs a command as the admin; its service is `BASE_URL` of the environment. */
export const run = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Run => {
  const child = spawn(process.execPath, [main, ...args], {
    env: {
      PATH: process.env["PATH"] ?? "",
      RESTANTE_TOKEN: adminToken,
      XDG_CONFIG_HOME: noContexts,
      ...env
    },
    stdio: ["pipe", "pipe", "pipe"]
  })
  children.add(child)
  const output = { stdout: "", stderr: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text))
  child.stdin.on("error", () => {}) // the command may exit without reading its input
  child.stdin.end(input)
  const ended = new Promise<Ran>((resolve) => {
    child.on("close", (status) => {
      children.delete(child)
      resolve({ status, ...output })
    })
  })
  return { child, output, ended }
}

/** Ends every process of this module: for `afterAll`. */
export const endCommands = (): void => {
  for (const child of children) child.kill("SIGKILL")
  closeReceivers()
  cleanUp()
}

/** The requests of the receiver, by path. */
export const bodies = new Map<string, Array<string>>()

export const bodyAt = (path: string): string => bodies.get(path)?.[0] ?? ""

/** `/503-1/…` responds 503 once and then 202; `/404/…` always 404; other paths 202. */
const answerOf = (path: string, count: number): number => {
  const [, status = "202", times] = /^\/(\d{3})(?:-(\d+))?\//.exec(path) ?? []
  return times !== undefined && count > Number(times) ? 202 : Number(status)
}

/** The origin of other services' mailboxes; any path is one. */
export const startOther = (): Promise<string> =>
  receiver(({ body, path }, response) => {
    const got = [...(bodies.get(path) ?? []), body]
    bodies.set(path, got)
    response.writeHead(answerOf(path, got.length), { Location: "/stored" }).end()
  })

/** A service that may reach the receivers, and stops retrying soon. */
export const serviceEnv: Environment = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: "0,200ms,200ms"
}

/** The output of `send`. */
export const uriPattern = new RegExp(`^${publicUrl}/outgoing/admin/[\\w-]+\\n$`)

export type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** Runs a command with a fake service; returns its result and the requests. */
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
