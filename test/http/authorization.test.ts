/**
 * The authorization matrix (protocol §7): every method of every resource in the routing table, as
 * every kind of caller. `authorization.md` has the expected answers; an operation without a row
 * fails, and so does a row without an operation.
 */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { AuthorizationRequests, callers } from "./authorization-requests.ts"
import { type Answered, type Harness, startService } from "./harness.ts"

const page = readFileSync(new URL("authorization.md", import.meta.url), "utf8")
const [heads = [], , ...rows] = page.slice(page.indexOf("## Expected answers"))
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim().replaceAll("`", "")))

let service: Harness
let requests: AuthorizationRequests
beforeAll(async () => {
  service = await startService(resourceTable)
  requests = new AuthorizationRequests(service)
})
afterAll(() => service.close())

/** The word of an answer in the table: `yes` for a success, else its status. */
const wordOf = ({ headers, status, text }: Answered): string => {
  if (status < 400) return "yes"
  if (status === 403 && headers.get("www-authenticate")?.includes("insufficient_scope") === true) {
    return "scope"
  }
  if (status === 401 || status === 403 || status === 404) return String(status)
  throw new Error(`${status}: ${text}`)
}

describe("the authorization matrix", () => {
  it("has a row for each operation of the routing table, and no other", () => {
    const operations = resourceTable(service.service).flatMap(({ methods, pattern }) =>
      Object.keys(methods).map((method) => `${method} ${pattern}`)
    )
    expect(rows.map(([operation]) => operation)).toEqual(operations.toSorted())
    expect(heads).toEqual(["operation", ...callers])
  })

  it.each(rows.map((row) => [row[0] ?? "", row] as const))("holds for %s", async (_, row) => {
    const [operation = "", ...expected] = row
    const found: Array<string> = []
    for (const caller of callers) found.push(wordOf(await requests.ask(operation, caller)))
    expect(Object.fromEntries(callers.map((caller, at) => [caller, found[at]])))
      .toEqual(Object.fromEntries(callers.map((caller, at) => [caller, expected[at]])))
    if (!operation.startsWith("GET ")) return
    // HEAD tells nobody more than GET does.
    for (const [at, caller] of callers.entries()) {
      const head = await requests.ask(operation.replace("GET", "HEAD"), caller)
      const isEqual = expected[at] === "yes" ? head.status < 400 : head.status >= 400
      expect([operation, caller, head.status, isEqual])
        .toEqual([operation, caller, head.status, true])
    }
  })
})
