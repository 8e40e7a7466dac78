/**
 * Requests of strangers: credentials that a program has left empty are no credentials of nobody,
 * and a body is not waited for where its request needs other credentials.
 */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { head, openRaw, statusesOf } from "../e2e/raw.ts"
import { answered } from "../wire/answers.ts"
import { AuthorizationRequests } from "./authorization-requests.ts"
import { type Harness, startService } from "./harness.ts"

const cells = readFileSync(new URL("authorization.md", import.meta.url), "utf8").split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim().replaceAll("`", "")))

/** Operations that a request without credentials may not do. */
const closed = new Set(
  cells.flatMap(([operation = "", anonymous]) => anonymous === "401" ? [operation] : [])
)

/** Operations at which a wrong token fails, also of those that are open to everybody. */
const askingWhose = new Set(
  cells.flatMap(([operation = "", ...callers]) => callers[9] === "401" ? [operation] : [])
)

/** Sessions are open to everybody: whose one is, its actor decides together with the answer. */
const isDecidedWithBody = (operation: string): boolean => operation.includes(" /sessions/")

const base64 = (text: string): string => Buffer.from(text).toString("base64")

let service: Harness
let requests: AuthorizationRequests
beforeAll(async () => {
  service = await startService(resourceTable)
  requests = new AuthorizationRequests(service)
})
afterAll(() => service.close())

/** The operations of the routing table, and whether they read a body. */
const operations = (): ReadonlyArray<readonly [operation: string, hasBody: boolean]> =>
  resourceTable(service.service).flatMap(({ methods, pattern }) =>
    Object.entries(methods).map(([method, { body = "none" }]) =>
      [`${method} ${pattern}`, body !== "none"] as const
    )
  )

describe("a stranger", () => {
  it("is refused before the body arrives, at every operation that needs credentials", async () => {
    const port = Number(new URL(service.nodes[0] ?? "").port)
    const wrong = ["", "Authorization: Bearer wrong", `Authorization: Basic ${base64("a:b")}`]
    const statusOf = async (operation: string, field: string): Promise<string> => {
      const { path, type } = await requests.target(operation)
      const lines = ["Host: a", `Content-Type: ${type}`, "Content-Length: 1000"]
      const connection = await openRaw(port)
      connection.socket.write(head(
        `${operation.split(" ")[0] ?? ""} ${path} HTTP/1.1`,
        ...lines,
        ...field === "" ? [] : [field]
      ))
      await answered(connection)
      connection.socket.destroy()
      return `${operation} ${field}: ${statusesOf(connection.received())[0]}`
    }
    const asked = operations().filter(([operation, hasBody]) =>
      hasBody && closed.has(operation) && !isDecidedWithBody(operation)
    ).flatMap(([operation]) => wrong.map((field) => [operation, field] as const))
    const found = await Promise.all(asked.map((one) => statusOf(...one)))
    expect(found).toEqual(asked.map(([operation, field]) => `${operation} ${field}: 401`))
    expect(found.length).toBeGreaterThan(60)
  }, 120_000)

  const empty = [
    "Bearer",
    "bearer ",
    "Basic",
    "Basic ",
    `Basic ${base64("alice")}`,
    `Basic ${base64("alice:")}`,
    `Basic ${base64(":")}`,
    "Bearer two words",
    "Bearer, Bearer",
    "Bearer,",
    "Bearer\trst_token"
  ]

  /** None of these requests changes anything: one path for each operation is enough. */
  const asked: Array<readonly [operation: string, path: string]> = []
  beforeAll(async () => {
    for (const [operation] of operations()) {
      if (askingWhose.has(operation)) {
        asked.push([operation, (await requests.target(operation)).path])
      }
    }
  })

  it.each(empty)("is not whoever sends the empty credentials %j", async (authorization) => {
    const isBearer = authorization.toLowerCase().startsWith("bearer")
    expect(asked.length).toBeGreaterThan(20)
    for (const [operation, path] of asked) {
      const answer = await requests.asking(operation, path, { authorization })
      expect([operation, answer.status]).toEqual([operation, 401])
      expect(answer.text).toContain(
        isBearer ? "no token after Bearer" : "lacks a name, a token or both after Basic"
      )
      expect(answer.text).toContain("or leave the field out")
      expect(answer.header("www-authenticate"))
        .toContain(isBearer ? "error=\"invalid_token\"" : "Basic realm=")
    }
  })

  it("may send another scheme, which counts as no credentials", async () => {
    const headers = { authorization: "Digest username=\"a\"" }
    const published = await service.send("POST", "/content", { body: "a", headers })
    expect(published.status).toBe(202)
  })
})
