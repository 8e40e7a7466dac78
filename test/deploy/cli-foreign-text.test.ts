/** The built command line, with a service whose text would control a terminal. */
import { afterAll, expect, it } from "vitest"
import { type Answering, endCommands, type Ran, withFake } from "./cli-harness.ts"

afterAll(endCommands)

/** Writes the clipboard, clears the screen, and forges a line. */
const evil = "x\u001b]52;c;eA==\u0007\u001b[2J\rforged\u009b31m\u202e"

// JSON.stringify leaves U+0080 to U+009F as they are.
const answering = (status: number, document: unknown): Answering => (_, response) => {
  const type = status < 400 ? "application/json" : "application/problem+json"
  response.writeHead(status, { "content-type": type }).end(JSON.stringify(document))
}

const expectPlain = ({ stderr, stdout }: Ran): void => {
  expect(`${stdout}${stderr}`).not.toMatch(/[^\P{Cc}\n\t]/u)
  expect(`${stdout}${stderr}`).toContain("forged")
}

it("reports a failure without text that controls a terminal", async () => {
  const answer = answering(404, { title: evil, detail: `${evil}\n${evil}` })
  const ran = await withFake(answer, ["query", "customers"])
  expect(ran.status).toBe(1)
  expectPlain(ran)
})

it.each([false, true])("prints rows without it, as JSON: %s", async (json) => {
  const id = encodeURIComponent(evil)
  const answer = answering(200, { customer: [{ href: `/customers/${id}`, [evil]: evil }] })
  const ran = await withFake(answer, ["query", "customers", ...json ? ["--json"] : []])
  expect(ran.status).toBe(0)
  expectPlain(ran)
  if (json) expect(JSON.parse(ran.stdout)).toMatchObject({ [evil]: evil })
})
