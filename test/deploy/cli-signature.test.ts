/** `restante registrations check-signature`, built: its input, its output and its exit codes. */
import { Webhook } from "standardwebhooks"
import { afterAll, expect, it } from "vitest"
import { endCommands, type Environment, fileWith, type Ran, run } from "./cli-harness.ts"

afterAll(endCommands)

const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`
const sentAt = new Date("2030-01-01T00:00:00Z")
const body = "<changed/>"
const head = [
  "POST /hook HTTP/1.1",
  "Webhook-Id: msg_1",
  `Webhook-Timestamp: ${sentAt.getTime() / 1000}`,
  `Webhook-Signature: ${new Webhook(secret).sign("msg_1", sentAt, body)}`
].join("\r\n")

/** No service is there: the command works without one. */
const check = (
  args: ReadonlyArray<string>,
  { env = { RESTANTE_WEBHOOK_SECRET: secret }, input = "" }: {
    readonly env?: Environment
    readonly input?: string
  } = {}
): Promise<Ran> =>
  run(
    ["registrations", "check-signature", ...args],
    { BASE_URL: "http://localhost:9", ...env },
    input
  )
    .ended

const at = ["--at", "2030-01-01T00:01:00Z"]

it("reads a push of a file or of standard input, and a body of a file of its own", async () => {
  const whole = `${head}\r\n\r\n${body}`
  const all = await Promise.all([
    check([fileWith(whole), ...at]),
    check(at, { input: whole }),
    check([fileWith(head), "--body-file", fileWith(body), ...at]),
    check([fileWith(head), "--body-file", "-", ...at], { input: body }),
    check(["-", "--secret-file", fileWith(`${secret}\n`), ...at], { env: {}, input: whole })
  ])
  for (const { status, stderr, stdout } of all) {
    expect([status, stderr]).toEqual([0, ""])
    expect(stdout).toMatch(/^✓ right\nwhat: the signature is right\nof: .*msg_1.*\ndo: .+\n$/)
  }
})

it("says what is wrong, and exits with 1", async () => {
  const [old, json] = await Promise.all([
    check(["--at", "2030-01-01T01:00:00Z"], { input: `${head}\n\n${body}` }),
    check([...at, "--json"], { input: `${head}\n\n${body}\n` })
  ])
  expect(old.status).toBe(1)
  expect(old.stderr).toMatch(/^restante: the signature of the push is stale: check a push when /)
  expect(old.stdout).toContain(
    "what: the time of the push is 1 hour old, and 5 minutes are allowed"
  )
  expect(json.status).toBe(1)
  expect(JSON.parse(json.stdout)).toEqual({
    result: "wrong",
    problem: expect.stringContaining("no newline at its end"),
    subject: "the body of 11 bytes",
    advice: expect.stringMatching(/./)
  })
  expect(`${old.stdout}${json.stdout}`).not.toContain(secret.slice(6, 16))
})

it("takes no secret as an argument, and says what else it needs", async () => {
  const wrong = await Promise.all([
    check(["--secret", secret]),
    check(["-"], { env: {}, input: head }),
    check(["-", "--secret-file", "-"]),
    check(["--at", "yesterday"], { input: head })
  ])
  const said = wrong.map(({ status, stderr }) => [status, stderr.split("\n")[0]])
  expect(said).toEqual([
    [2, expect.stringContaining("RESTANTE_WEBHOOK_SECRET, or use --secret-file")],
    [2, expect.stringContaining("there is no secret to check the signature with")],
    [2, expect.stringContaining("standard input (-) is read once")],
    [2, expect.stringContaining("--at is \"yesterday\", which is no time")]
  ])
  for (const { stderr } of wrong) expect(stderr).not.toContain(secret)
  const missing = await check(["/nowhere/at/all"])
  expect([missing.status, missing.stderr]).toEqual([
    1,
    expect.stringContaining("cannot be read")
  ])
})
