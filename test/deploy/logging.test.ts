/** Log lines: their form and level, and that they contain no secret. */
import { Cause, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { loggingLayer, redactText, redactValue } from "../../deploy/node/logging.ts"

const logged = async (
  program: Effect.Effect<void>,
  logLevel: "debug" | "info" | "none" = "info",
  logFormat: "json" | "text" = "json"
): Promise<ReadonlyArray<string>> => {
  const lines: Array<string> = []
  const layer = loggingLayer({ logLevel, logFormat }, (line) => lines.push(line))
  await Effect.runPromise(Effect.provide(program, layer))
  return lines
}

describe("a log line", () => {
  it("is one line of JSON with time, level, message and fields", async () => {
    const [line = "", ...more] = await logged(
      Effect.logWarning("two\nlines", { status: 202 }).pipe(Effect.annotateLogs("kind", "mailbox"))
    )
    expect(more).toEqual([])
    expect(line.trimEnd()).not.toContain("\n")
    expect(JSON.parse(line)).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      level: "warn",
      message: "two\nlines",
      status: 202,
      kind: "mailbox"
    })
  })

  it("is text for people if configured", async () => {
    const [line] = await logged(Effect.logInfo("hello", { status: 202 }), "info", "text")
    expect(line).toMatch(/^\S+ INFO {2}hello status=202\n$/)
  })

  it("as text shows control characters, so that a request writes no line of its own", async () => {
    const forged = "a\nb\r\u001b[2Jc\u0085\u2028d"
    const [line = ""] = await logged(
      Effect.logInfo(forged, { name: forged, at: [forged] }),
      "info",
      "text"
    )
    const shown = "a\\u000ab\\u000d\\u001b[2Jc\\u0085\\u2028d"
    expect(line.slice(line.indexOf("INFO"))).toMatch(/^INFO {2}a[^\n]+\n$/)
    expect(line).toContain(` ${shown} name=${shown} at=`)
    // eslint-disable-next-line no-control-regex
    expect(line.trimEnd()).not.toMatch(/[\0-\x1f\x7f-\x9f\u2028\u2029]/)
    const failed = Effect.logError("failed", Cause.fail(new Error(forged)))
    const [lines = ""] = await logged(failed, "info", "text")
    for (const one of lines.trimEnd().split("\n").slice(1)) expect(one).toMatch(/^ {2}/)
  })

  it("is written from its level on", async () => {
    const both = Effect.andThen(Effect.logDebug("low"), Effect.logError("high"))
    expect(await logged(both)).toHaveLength(1)
    expect(await logged(both, "debug")).toHaveLength(2)
    expect(await logged(both, "none")).toHaveLength(0)
  })
})

describe("redaction", () => {
  it.each([
    ["GET /mailboxes/alice~Zm9vYmFyYmF6cXV4", "Zm9vYmFyYmF6cXV4"],
    ["Authorization: Bearer abc.def", "abc.def"],
    ["Basic YWxpY2U6c2VjcmV0", "YWxpY2U6c2VjcmV0"],
    ["message-password: open-sesame-1234", "open-sesame-1234"],
    ["<password>open-sesame</password>", "open-sesame"],
    ["{\"token\":\"s3cr3t\"}", "s3cr3t"],
    ["http://bob:hunter2@example.org/", "hunter2"],
    ["whsec_MfKQ9r8GKYqrTwjU", "MfKQ9r8GKYqrTwjU"]
  ])("hides what is secret in %s", (text, hidden) => {
    expect(redactText(text)).not.toContain(hidden)
  })

  it("hides fields by name, at any depth", () => {
    const value = { headers: { Authorization: "x1y2", accept: "text/html" }, tokens: 3 }
    expect(redactValue(value)).toEqual({
      headers: { Authorization: "<redacted>", accept: "text/html" },
      tokens: 3
    })
  })

  it("preserves other text", () => {
    const text = "POST /mailboxes/alice 202 in 3 ms, about ~12 more"
    expect(redactText(text)).toBe(text)
  })

  it("survives cycles and long texts", () => {
    const loop: Record<string, unknown> = {}
    loop["self"] = loop
    expect(JSON.stringify(redactValue(loop)).length).toBeLessThan(200)
    expect(redactText("x".repeat(1_000_000)).length).toBeLessThan(10_000)
  })

  it("keeps secrets out of causes", async () => {
    const failing = Effect.die(new Error("token=s3cr3t")).pipe(
      Effect.catchCause((cause) => Effect.logError("failed", cause))
    )
    const [line = ""] = await logged(failing)
    expect(line).toContain("failed")
    expect(line).not.toContain("s3cr3t")
  })
})
