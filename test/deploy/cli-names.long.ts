/**
 * Names and URIs of resources are interchangeable in every command: each command that takes one
 * runs with the short name, the path and the URI, and does the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { manualPage } from "../../deploy/manual/index.ts"
import { adminToken, publicUrl, type Service, start } from "../e2e/process.ts"
import { echoes, receiver } from "../e2e/receivers.ts"
import { endCommands, type Environment, type Ran, run, serviceEnv } from "./cli-harness.ts"

let service: Service

const restante = (args: ReadonlyArray<string>, env: Environment = {}, input = ""): Promise<Ran> =>
  run(args, { BASE_URL: service.url, ADMIN_TOKEN: adminToken, ...env }, input).ended

/** The output of a command that must succeed. */
const succeed = async (args: ReadonlyArray<string>, input = ""): Promise<string> => {
  const { status, stderr, stdout } = await restante(args, {}, input)
  expect(status, `${args.join(" ")}: ${stderr}`).toBe(0)
  return stdout.trim()
}

const post = async (
  path: string,
  body: object,
  slug = ""
): Promise<{ readonly href?: unknown }> => {
  const response = await fetch(service.url + path, {
    method: "POST",
    headers: {
      accept: "application/json",
      authorization: `Bearer ${adminToken}`,
      "content-type": "application/json",
      ...slug === "" ? {} : { slug }
    },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  expect(response.status, text).toBeLessThan(300)
  return JSON.parse(text)
}

let callback = ""

const letterTo = (
  to: string
) => ["send", "--to", to, "--description", "a letter", "--url", "http://a.test/letter"]

const send = (): Promise<string> => succeed(letterTo("alice"))

const register = async (): Promise<string> =>
  (await succeed(["register", "alice", callback, "--wait"])).split("\n")[0] ?? ""

const lastSegment = (uri: string): string => uri.slice(uri.lastIndexOf("/") + 1)

const received = async (): Promise<string> => {
  const [first = "{}"] = (await succeed(["read", "alice", "--json", "--limit", "1"])).split("\n")
  return String(JSON.parse(first).href)
}

const account = async (): Promise<string> => {
  const name = `carol-${counter.next()}`
  await succeed(["account", "add", name])
  return `${service.url}/accounts/${name}`
}

const counter = { at: 0, next: (): number => ++counter.at }

const session = async (): Promise<string> => {
  const { stderr } = await restante(["bridge"], {}, "yes\nRobin\n")
  return `${publicUrl}/sessions/${/restante bridge \S*\/(\S+)/.exec(stderr)?.[1] ?? ""}`
}

const token = async (): Promise<string> => {
  const label = `label-${counter.next()}`
  await succeed(["account", "token", "bob", "--name", label])
  const tokens = JSON.parse(await succeed(["account", "tokens", "bob", "--json"]))
  const id = tokens.find(({ name }: { readonly name: string }) => name === label)?.id
  return `${service.url}/accounts/bob/tokens/${id}`
}

const query = async (): Promise<string> =>
  String((await post("/queries", { on: "customers" })).href)

/** The short name of a resource with this URI. */
const shortName = (uri: string): string => {
  const [, first = "", second = "", , fourth] = new URL(uri).pathname.split("/")
  if (first === "outgoing") return lastSegment(uri)
  return fourth === undefined ? second : `${second}/${fourth}`
}

const mailbox = () => Promise.resolve(`${publicUrl}/mailboxes/alice`)

const ownMailbox = () => Promise.resolve(`${service.url}/mailboxes/alice`)

const bob = () => Promise.resolve(`${service.url}/accounts/bob`)

/** The command with `RESOURCE` for the argument, how to make a resource, and standard input. */
type Row = readonly [command: string, resource: () => Promise<string>, input?: string]

const rows: ReadonlyArray<Row> = [
  ["account add RESOURCE", () => Promise.resolve(`${service.url}/accounts/x${counter.next()}`)],
  ["account export RESOURCE", bob],
  ["account remove RESOURCE", account],
  ["account token RESOURCE", bob],
  ["account token bob --scope mailbox:RESOURCE", ownMailbox],
  ["account tokens RESOURCE", bob],
  ["account revoke bob RESOURCE", token],
  ["account revoke RESOURCE --all", bob],
  ["audit list --account RESOURCE", bob],
  ["send --to RESOURCE --description letter --url http://a.test/x", mailbox],
  ["read --account RESOURCE alice", () => Promise.resolve(`${publicUrl}/accounts/admin`)],
  ["read RESOURCE", mailbox],
  ["read RESOURCE", received],
  ["register RESOURCE CALLBACK", mailbox],
  ["registrations list RESOURCE", mailbox],
  ["registrations show RESOURCE", register],
  ["registrations attempts RESOURCE", register],
  ["registrations pause RESOURCE", register],
  ["registrations lift RESOURCE", register],
  ["registrations test RESOURCE", register],
  ["registrations replay RESOURCE --since 2026-01-01T00:00:00Z", register],
  ["registrations rotate RESOURCE", register],
  ["registrations delete RESOURCE", register],
  ["outbox show RESOURCE", send],
  ["outbox attempts RESOURCE", send],
  ["outbox retry RESOURCE --to alice", send],
  ["outbox replace RESOURCE --description letter --url http://a.test/y", send],
  ["outbox withdraw RESOURCE", send],
  ["outbox delete RESOURCE", send],
  ["query customers --query RESOURCE", query],
  ["bridge RESOURCE", session, "The grail\nNineveh\n"]
]

/** Commands whose arguments name no resource of the service, or that never end. */
const withoutResource = new Set([
  "serve",
  "config",
  "doctor",
  "top",
  "check",
  "backup",
  "restore",
  "migrate",
  "load",
  "outbox pause",
  "outbox resume",
  "audit verify",
  "account list",
  "context add",
  "context use",
  "context list",
  "context remove",
  "context show",
  "registrations check-signature"
])

const commandOf = (row: string): string =>
  row.split(" ").slice(0, /^(?:account|audit|registrations|outbox) /.test(row) ? 2 : 1).join(" ")

beforeAll(async () => {
  callback = await receiver((request, response) => {
    if (!echoes(request, response)) response.writeHead(204).end()
  })
  service = await start({ env: serviceEnv })
  await post("/mailboxes", {}, "alice")
  await succeed(["account", "add", "bob"])
  await succeed([...letterTo("alice"), "--wait"])
})

afterAll(endCommands)

describe("a resource of the service", () => {
  it("is named in each command, or in none of these", async () => {
    const page = await manualPage()
    const commands = [...page.matchAll(/^\.SS restante (.+)$/gm)]
      .map(([, name = ""]) => name.replaceAll("\\", ""))
      .filter((name) => !/^(?:account|audit|context|registrations)$/.test(name))
    const named = new Set([...rows.map(([command]) => commandOf(command)), "watch", "outbox"])
    expect([...named, ...withoutResource].toSorted()).toEqual(
      [...new Set([...commands, ...named].filter((name) => commands.includes(name)))].toSorted()
    )
  })

  for (const [command, make, input] of rows) {
    it(`is named by its name, its path or its URI in ${command}`, async () => {
      const pathOf = (uri: string): string => new URL(uri).pathname
      const forms = [
        shortName,
        pathOf,
        (uri: string) => publicUrl + pathOf(uri),
        (uri: string) => service.url + pathOf(uri)
      ]
      await Promise.all(forms.map(async (form) => {
        const named = form(await make())
        const args = command.split(" ").map((word, at) =>
          word.replace("RESOURCE", named).replace("CALLBACK", `${callback}/${at}-${counter.next()}`)
        )
        const { status, stderr } = await restante(args, {}, input)
        expect(status, `${args.join(" ")}: ${stderr}`).toBe(0)
      }))
    })
  }

  it("is watched by its name, its path or its URI", async () => {
    for (const named of ["alice", "/mailboxes/alice", `${service.url}/mailboxes/alice`]) {
      const { child, ended, output } = run(["watch", named], { BASE_URL: service.url })
      await new Promise<void>((resolve) => {
        child.once("close", () => resolve())
        child.stdout?.on("data", () => {
          if (output.stdout.includes("a letter")) resolve()
        })
      })
      child.kill("SIGTERM")
      expect((await ended).stdout).toContain("a letter")
    }
  })

  it.each([
    [["account", "tokens", "/mailboxes/alice"], "the URI of an account, or its name"],
    [["account", "revoke", "bob", "/accounts/alice/tokens/1"], "name the account alice"],
    [["read", "/accounts/bob"], "give the name or the URI of a mailbox, or MAILBOX/ID"],
    [["registrations", "show", "alice"], "give MAILBOX/ID or the URI of a registration"],
    [["outbox", "show", "/mailboxes/alice"], "give ID, ACCOUNT/ID or the URI"],
    [["bridge", "/mailboxes/alice"], "give the id or the URI of a session"],
    [["query", "customers", "--query", "/customers"], "give the id or the URI of a query"]
  ])("is refused where another kind is named: %j", async (args, message) => {
    const ran = await restante(args)
    expect(ran).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(message) })
  })

  const other = "https://other.test"
  const message = (): string =>
    `is no address of ${service.url}, which the command calls: give the name alone`

  it.each([
    ["account", "add", `${other}/accounts/dora`],
    ["account", "export", `${other}/accounts/bob`],
    ["account", "remove", `${other}/accounts/bob`],
    ["account", "tokens", `${other}/accounts/bob`],
    ["account", "revoke", `${other}/accounts/bob`, "--all"],
    ["account", "revoke", "bob", `${other}/accounts/bob/tokens/x1`],
    ["account", "token", `${other}/accounts/bob`],
    ["account", "token", "bob", "--scope", `mailbox:${other}/mailboxes/alice`],
    ["read", `${other}/mailboxes/alice`],
    ["watch", `${other}/mailboxes/alice`],
    ["register", `${other}/mailboxes/alice`, "http://a.test/hook"],
    ["registrations", "list", `${other}/mailboxes/alice`],
    ["query", "customers", "--query", `${other}/queries/x1`],
    ["bridge", `${other}/sessions/x1`]
  ])("of another service is refused: %s %s %s", async (...args) => {
    const ran = await restante(args)
    expect(ran).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining(message())
    })
  })

  it("of another service is neither removed nor changed", async () => {
    const elsewhere = (uri: string): string => other + new URL(uri).pathname
    const registration = await register()
    for (const command of ["show", "attempts", "pause", "lift", "test", "rotate", "delete"]) {
      const ran = await restante(["registrations", command, elsewhere(registration)])
      expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining(message()) })
    }
    expect(JSON.parse(await succeed(["registrations", "show", registration, "--json"])))
      .toMatchObject({ status: "active" })
    const sent = await send()
    for (const command of ["show", "attempts", "retry", "withdraw", "delete"]) {
      const ran = await restante(["outbox", command, elsewhere(sent)])
      expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining(message()) })
    }
    expect(JSON.parse(await succeed(["outbox", "show", sent, "--json"]))).toEqual(
      expect.not.objectContaining({ withdrawn: expect.anything() })
    )
  })

  it("of another service is refused as a secret URI, which is not shown", async () => {
    const ran = await restante(["read", "-"], {}, `${other}/mailboxes/alice~secret\n`)
    expect(ran).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`the URI of standard input ${message()}`)
    })
    expect(ran.stderr).not.toContain("secret")
  })
})
