/** The removal of an account that owns something (protocol §7). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { descriptions, type Mailboxes, notification, owner as admin,
  startMailboxes } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

let service: Mailboxes

/** Runs once before the removal of an account, after the check that it owns nothing. */
let beforeRemoval: (() => Promise<unknown>) | undefined

const withStepBeforeRemoval = (one: Service): Service => ({
  ...one,
  system: {
    ...one.system,
    ask: (to, message) => {
      const step = to.kind === "account" && message._tag === "Remove" ? beforeRemoval : undefined
      if (step === undefined) return one.system.ask(to, message)
      beforeRemoval = undefined
      return Effect.andThen(Effect.promise(step), one.system.ask(to, message))
    }
  }
})

beforeAll(async () => void (service = await startMailboxes(withStepBeforeRemoval)))
afterAll(() => service.close())

const send: Mailboxes["send"] = (...request) => service.send(...request)

/** Creates an account, and returns its credentials. */
const join = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  return `${name}:${(await send("POST", "/accounts", { basic: admin, body })).child("token")}`
}

/** The path of what a request has created. */
const made = async (...request: Parameters<Mailboxes["send"]>): Promise<string> => {
  const answer = await send(...request)
  expect([201, 202], answer.text).toContain(answer.status)
  return new URL(answer.header("location")).pathname
}

const mailbox = (basic: string, name: string) =>
  made("POST", "/mailboxes", { basic, headers: { Slug: name } })

/** One resource of each kind; the path of each. */
const ownOneOfEach = async (basic: string, name: string) => {
  const box = await mailbox(basic, `${name}-box`)
  const to = `<to>${service.base}${box}</to>`
  const document = notification("m").replace("<notification>", `<notification>${to}`)
  const list = `<cabinet><mailbox href="${service.base}${box}"/></cabinet>`
  const started = "<answer continue=\"true\"/>"
  return {
    mailbox: box,
    content: await made("POST", "/content", { basic, body: "words", type: "text/plain" }),
    outgoing: await made("POST", `/outgoing/${name}`, { basic, body: document }),
    cabinet: await made("POST", "/cabinets", { basic, body: list }),
    session: await made("POST", "/sessions", { basic, body: started }),
    query: await made("POST", "/queries", { basic, body: "<query on=\"customers\"/>" })
  }
}

const statusOf = async (path: string, basic = admin) => (await send("GET", path, { basic })).status

const allGone = (paths: ReadonlyArray<string>) =>
  eventually(`${paths.join(", ")} are gone`, async () => {
    const statuses = await Promise.all(paths.map((path) => statusOf(path)))
    return statuses.every((status) => status === 410) ? true : undefined
  })

const tables = [
  ["outgoing", ""],
  ["mailboxes-by-owner", ""],
  ["cabinets-by-owner", ""],
  ["sessions-by-owner", ""],
  ["queries-by-owner", ""],
  ["content-listing", "account="]
] as const

/** The entries of all listings of what an account owns. */
const entriesOf = async (name: string): Promise<ReadonlyArray<string>> => {
  const { records } = service.service
  const ranges = tables.map(([table, start]) =>
    service.run(records.range(table, { prefix: `${start}${name}/`, limit: 100 }))
  )
  return (await Promise.all(ranges)).flat().map(({ key }) => key)
}

describe("the removal of an account with a mailbox for its failure reports", () => {
  const reportsOf = async (name: string) =>
    `/mailboxes/${
      (await send("GET", `/accounts/${name}`, { basic: admin })).child("failure-reports")
    }`

  it("removes the mailbox, too, if nobody has used it", async () => {
    await join("brief")
    const reports = await reportsOf("brief")
    expect(await statusOf(reports)).toBe(403)
    expect((await send("DELETE", "/accounts/brief", { basic: admin })).status).toBe(204)
    expect(await statusOf(reports)).toBe(410)
    expect(await entriesOf("brief")).toEqual([])
  })

  it("is refused if something is in it, and deletes it with the rest", async () => {
    const basic = await join("reported")
    const reports = await reportsOf("reported")
    const body = notification("m")
    expect((await send("POST", reports, { basic, body })).status).toBe(202)
    const refused = await send("DELETE", "/accounts/reported", { basic: admin })
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("owns 1 mailbox")])
    const path = "/accounts/reported?owned=delete"
    expect((await send("DELETE", path, { basic: admin })).status).toBe(202)
    await allGone([reports])
  })
})

describe("the removal of an account that owns something", () => {
  it("is refused without a word on what becomes of it", async () => {
    const basic = await join("careful")
    const owned = await ownOneOfEach(basic, "careful")
    const refused = await send("DELETE", "/accounts/careful", { basic: admin })
    expect(refused.status).toBe(409)
    for (
      const part of [
        "1 mailbox, 1 content resource, 1 sent notification, 1 cabinet, 1 session, 1 query",
        "/accounts/careful?owned=delete"
      ]
    ) expect(refused.text).toContain(part)
    const other = await send("DELETE", "/accounts/careful?owned=keep", { basic: admin })
    expect(other.status).toBe(400)
    const own = await send("DELETE", "/accounts/careful?owned=delete", { basic })
    expect(own.status).toBe(403)
    for (const path of Object.values(owned)) expect(await statusOf(path, basic)).toBe(200)
  })

  it("deletes all of it if the request says so, and nothing of others", async () => {
    const basic = await join("leaver")
    const owned = await ownOneOfEach(basic, "leaver")
    const others = await ownOneOfEach(service.bob, "bob")
    const removed = await send("DELETE", "/accounts/leaver?owned=delete", { basic: admin })
    expect(removed.status).toBe(202)
    // Its credentials are worth nothing from now on, whatever is deleted so far.
    expect(await statusOf("/mailboxes", basic)).toBe(401)
    const { outgoing, ...readable } = owned
    await allGone(Object.values(readable))
    expect(await statusOf(outgoing)).not.toBe(200)
    await eventually(
      "no listing has an entry",
      async () => (await entriesOf("leaver")).length === 0 ? true : undefined
    )
    for (const path of Object.values(others)) expect(await statusOf(path, service.bob)).toBe(200)
    const progress = await send("GET", "/accounts/leaver", { basic: admin })
    expect(progress.status).toBe(410)
    expect(progress.text).toContain("what it owned is being deleted, 7 resources so far")
    const again = await send("DELETE", "/accounts/leaver?owned=delete", { basic: admin })
    expect(again.status).toBe(410)
    const audit = await send("GET", "/audit?action=account.remove&limit=1", { basic: admin })
    expect(childrenOf(audit.xml, "entry")[0]?.attributes).toMatchObject({
      detail: "with everything that it owns",
      outcome: "refused",
      target: "/accounts/leaver"
    })
  })

  it("deletes more than one page, and every entry", async () => {
    const basic = await join("hoarder")
    const names = Array.from({ length: 150 }, (_, n) => `hoard-${n}`)
    const paths: Array<string> = []
    for (const name of names) paths.push(await mailbox(basic, name))
    const removed = await send("DELETE", "/accounts/hoarder?owned=delete", { basic: admin })
    expect(removed.status).toBe(202)
    await allGone(paths)
    await eventually(
      "no listing has an entry",
      async () => (await entriesOf("hoarder")).length === 0 ? true : undefined
    )
  })

  it("ends relays, and receives nothing in the mailboxes", async () => {
    const basic = await join("sender")
    const box = await mailbox(basic, "sender-box")
    const removed = await send("DELETE", "/accounts/sender?owned=delete", { basic: admin })
    expect(removed.status).toBe(202)
    await allGone([box])
    expect((await service.deposit(box, "late")).status).toBe(410)
    // The name stays taken: nobody else gets what is sent there.
    const taken = await send("POST", "/mailboxes", {
      basic: service.bob,
      headers: { Slug: "sender-box" }
    })
    expect(taken.status).toBe(409)
  })
})

it("an account that owned something once, and nothing now, is removed as any other", async () => {
  const basic = await join("tidy")
  const { cabinet, content, mailbox: box, outgoing, query, session } = await ownOneOfEach(
    basic,
    "tidy"
  )
  for (const path of [cabinet, content, outgoing, session, query, box]) {
    expect((await send("DELETE", path, { basic })).status).toBe(204)
  }
  expect((await send("DELETE", "/accounts/tidy", { basic: admin })).status).toBe(204)
  expect(await statusOf("/accounts/tidy")).toBe(410)
})

it("what requests create beside the removal stays, until an admin has it deleted", async () => {
  const basic = await join("racer")
  let box = ""
  let shared = ""
  beforeRemoval = async () => {
    const opened = await send("POST", "/mailboxes", { basic, headers: { Slug: "racer-box" } })
    box = new URL(opened.header("location")).pathname
    shared = childOf(opened.xml, "shared")?.attributes["href"] ?? ""
    expect((await service.deposit(box, "unread")).status).toBe(202)
  }
  const removed = await send("DELETE", "/accounts/racer", { basic: admin })
  expect(beforeRemoval).toBeUndefined()
  expect(removed.status).toBe(204)
  expect(await statusOf("/mailboxes", basic)).toBe(401)
  const kept = await send("GET", "/accounts/racer", { basic: admin })
  expect([kept.status, kept.text.includes("1 mailbox")]).toEqual([410, true])
  const again = await send("DELETE", "/accounts/racer", { basic: admin })
  expect(again.status).toBe(409)
  for (const part of ["is removed", "1 mailbox", "/accounts/racer?owned=delete"]) {
    expect(again.text).toContain(part)
  }
  expect(descriptions(await send("GET", shared))).toEqual(["unread"])
  expect((await send("DELETE", "/accounts/racer?owned=delete", { basic: admin })).status).toBe(202)
  await allGone([box])
})
