/** Every error of the command line has three parts: what happened, to what, and what to do. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { problemTypes } from "../../http/formats/problem-types.ts"
import { temporaryFolder } from "../e2e/process.ts"
import { endCommands, type Environment, fileWith, run } from "./cli-harness.ts"

let service: Server

let baseUrl = ""

/** The titles of the service: they are about a kind of refusals, and not about one. */
const titles = Object.values(problemTypes).map(({ title }) => title)

/**
 * Answers `/mailboxes/s404` and the like with that status, and with no problem document; `-title`
 * and `-detail` have one.
 */
beforeAll(async () => {
  service = createServer((request, response) => {
    const [, status = "200", has] = /\/s(\d{3})(-detail|-title)?/.exec(request.url ?? "") ?? []
    const title = Object.values(problemTypes).find((one) => String(one.status) === status)?.title
    const detail = has === "-detail" ? { detail: "it is full: remove one first" } : {}
    const problem = { title, status, ...detail }
    response.writeHead(Number(status), { "content-type": "application/problem+json" })
    response.end(has === undefined ? "" : JSON.stringify(problem))
  })
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
  baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
})

afterAll(() => {
  service.close()
  endCommands()
})

type Row = readonly [
  command: string,
  status: number,
  problem: string,
  subject: string,
  advice: string,
  env?: Environment,
  input?: string
]

const noToken: Environment = { RESTANTE_TOKEN: "" }

const missing = "/nonexistent/file"

const message = "send --to alice --description x"

const usage: ReadonlyArray<Row> = [
  ["read inbox --limit 0", 2, "--limit: \"0\". Expected a value between 1", "--limit", "--help"],
  ["context add A! --url http://a.test", 2, "<name>: \"A!\". Expected 1 to 64", "A!", "--help"],
  ["account add A!", 2, "Expected the URI of an account", "A!", "--help"],
  ["account add bob", 2, "no token", "/127.0.0.1:", "set ADMIN_TOKEN", noToken],
  ["account add bob --token x", 2, "no flag", "--token", "set RESTANTE_TOKEN"],
  ["account revoke bob", 2, "no token", "bob", "give either one token or --all"],
  ["account revoke bob t1 --all", 2, "both", "bob", "give either one token or --all"],
  [
    "account revoke bob /accounts/eve/tokens/1",
    2,
    "no token of bob",
    "eve",
    "name the account eve"
  ],
  ["audit list --target bob", 2, "begins no path", "--target is bob", "/accounts/bob"],
  ["audit verify --noted 1", 2, "no entry", "--noted is 1", "give a number and a hash"],
  [
    `audit verify --stored --noted 1:${"x".repeat(43)}`,
    2,
    "running service only",
    "--noted",
    "leave out --stored"
  ],
  ["backup x --with-key --context y", 2, "no service sends its key", "--with-key", "copy the key"],
  ["bridge /mailboxes/alice", 2, "names nothing", "/mailboxes/alice", "give the id or the URI"],
  ["context add x --url ftp://a", 2, "no address", "ftp://a", "give "],
  ["context use x", 78, "does not exist", "context x", "restante context add"],
  ["load customers people", 2, "does not follow", "people", "give --format"],
  ["migrate", 2, "not named", "servers of the new cluster", "give --to"],
  [`${message} --url u --content f`, 2, "both --url and --content", "message", "give either"],
  [`${message} --generate-password`, 2, "none but the description", "message", "leave out"],
  [`${message} --priority 6`, 2, "no priority", "--priority is 6", "give 1 to 5"],
  [`${message} --tags a,,b`, 2, "an empty tag", "--tags", "give 1 to 20"],
  [`${message} --tags ${"t,".repeat(20)}t`, 2, "has 21 tags", "--tags", "give 1 to 20"],
  [`${message} --click ftp://a.test`, 2, "no http or https URI", "ftp://a.test", "give one such"],
  [`${message} --url u --type t`, 2, "--content only", "--type", "leave it out"],
  [`${message} --url u --generate-password`, 2, "generates no password", "--url", "use "],
  [
    `${message} --content - --generate-password --password-file f`,
    2,
    "two passwords",
    "message",
    "give either"
  ],
  [`load customers ${missing}.csv`, 1, "cannot be read", missing, "name a file"],
  ["outbox retry", 2, "nothing is named", "retry", "give either"],
  ["outbox retry x --since 2026-01-01T00:00:00Z", 2, "both", "notification", "give either"],
  ["outbox retry x --until 2026-01-01T00:00:00Z", 2, "without --since", "--until", "give --since"],
  ["outbox show /mailboxes/x", 2, "names nothing", "/mailboxes/x", "give ID"],
  ["outbox pause --origin here", 2, "no http or https URI", "--origin is here", "give one such"],
  ["outbox show -hello", 2, "no flag", "-hello", "write an id"],
  ["read alice --save x", 2, "needs one notification", "alice", "give MAILBOX/ID"],
  ["read alice~secret", 2, "secret part", "alice~…", "give -"],
  ["read - --token-file -", 2, "read once", "standard input (-)", "name a file"],
  ["read -", 2, "names nothing", "standard input", "give the name or the URI", {}, "/x\n"],
  [`read alice --token-file ${missing}`, 1, "cannot be read", missing, "name a file"],
  ["read alice", 2, "has no token", "RESTANTE_TOKEN", "set it again", { RESTANTE_TOKEN: "a b" }],
  ["read alice", 2, "names no account", "RESTANTE_ACCOUNT", "set it to", {
    RESTANTE_ACCOUNT: "B!"
  }],
  ["register alice hook", 2, "no URI", "callback hook", "give one"],
  ["registrations show alice", 2, "names nothing", "alice", "give MAILBOX/ID"],
  ["registrations check-signature --at x", 2, "no time", "--at is \"x\"", "write one such"],
  ["registrations check-signature", 2, "no secret", "signature", "set RESTANTE_WEBHOOK_SECRET"],
  ["serve --prot 1", 2, "Unrecognized flag", "--prot", "--help"],
  ["serve --port x", 78, "port is \"x\"", "flag --port", "expected a whole number"]
]

/** Stores and addresses that cannot be used. */
const places: ReadonlyArray<Row> = [
  ["check --data-dir ./nowhere", 75, "there is no store", "nowhere", "correct DATA_DIR"],
  ["backup x --data-dir ./nowhere", 75, "there is no store", "nowhere", "correct DATA_DIR"],
  ["serve --data-dir /proc/1/x", 78, "no such file", "/proc/1/x", "give a DATA_DIR"],
  [
    "serve --host 192.0.2.1 --port 1",
    75,
    "no address of this machine",
    "192.0.2.1:1",
    "set another PORT or HOST",
    { DATA_DIR: temporaryFolder() }
  ]
]

/** Answers of a service, or the lack of one. */
const refusals: ReadonlyArray<Row> = [
  ...([
    [401, 1, "use a valid token"],
    [403, 1, "use the token of an account"],
    [404, 1, "correct the name or the URI"],
    [405, 1, "use another command"],
    [409, 1, "look at its state"],
    [410, 1, "name another one"],
    [412, 1, "has changed meanwhile"],
    [413, 1, "send less"],
    [415, 1, "give another media type"],
    [422, 1, "correct the value"],
    [429, 75, "wait, then repeat"],
    [502, 75, "repeat the command when"],
    [503, 75, "wait, then repeat"],
    [504, 75, "see whether it was done"],
    [507, 1, "free space at the service"]
  ] as const).map(([status, code, advice]): Row => [
    `registrations list s${status}`,
    code,
    String(status),
    `/mailboxes/s${status}`,
    advice
  ]),
  ["registrations list s500", 1, "500", "/mailboxes/s500", "ask the operator"],
  ["registrations list s409-detail", 1, "409: it is full", "/mailboxes/s409", "remove one first"],
  ["registrations list s507-detail", 1, "it is full", "/mailboxes/s507-detail", "remove one first"],
  ["registrations list s409-title", 1, "409: this is not possible", "s409-title", "look at its"],
  ["read s401", 1, "needs its secret URI", "/mailboxes/s401", "use one of them", noToken],
  ["read s401", 1, "unknown, revoked or has expired", "/mailboxes/s401", "use another one"],
  ["read s401/x", 1, "unknown, revoked or has expired", "/mailboxes/s401", "use another one"],
  ["watch s401", 1, "unknown, revoked or has expired", "/mailboxes/s401", "use another one"],
  ["read s404", 1, "no such mailbox", "/mailboxes/s404", "correct the name"],
  ["read s410", 1, "has been deleted", "/mailboxes/s410", "name another one"],
  [
    "read https://other.test/mailboxes/s200",
    2,
    "no address of",
    "https://other.test",
    "give the name"
  ],
  ["read s200", 1, "not understood", "the service's response", "Correct its address"],
  [
    "read alice --base-url http://127.0.0.1:1",
    75,
    "cannot be reached",
    "http://127.0.0.1:1/mailboxes/alice",
    "start the service"
  ]
]

describe.concurrent("an error of the command line", () => {
  for (
    const [command, status, problem, subject, advice, env, input] of [
      ...usage,
      ...places,
      ...refusals
    ]
  ) {
    it(`says what happened, to what, and what to do: ${command}`, async ({ expect }) => {
      const ran = await run(command.split(" "), {
        BASE_URL: baseUrl,
        XDG_CONFIG_HOME: temporaryFolder(),
        ...env
      }, input).ended
      expect(ran, ran.stderr).toMatchObject({ status, stdout: "" })
      for (const part of [problem, subject, advice]) expect(ran.stderr).toContain(part)
      if (command.endsWith("-detail")) {
        for (const one of titles) expect(ran.stderr).not.toContain(one)
      }
      expect(ran.stderr).not.toContain("In conflict with")
      // The advice ends the message, and the problem before it has its subject.
      expect(ran.stderr).toMatch(/^restante: .{12,}(?:: |; |\. |\n).{4,}\n$/s)
    })
  }
})

it("says for a file that it is no push, and what a check of a signature has found", async () => {
  const secret = fileWith(`whsec_${"a".repeat(32)}`)
  const push = fileWith("a: b\n\nbody")
  const args = ["registrations", "check-signature", push, "--secret-file", secret]
  const { status, stderr } = await run(args).ended
  expect(status).toBe(1)
  expect(stderr).toMatch(/^restante: the signature of the push is \w+: .{20,}\n$/)
})
