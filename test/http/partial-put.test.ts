/** PUT with Content-Range is 400 on every resource that takes PUT (RFC 9110 §14.5). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, type Sending, startService } from "./harness.ts"
import { type Receiver, startReceiver } from "./receiver.ts"

let service: Harness
let receiver: Receiver
beforeAll(async () => {
  service = await startService(resourceTable)
  receiver = await startReceiver(({ path }, response) => {
    const challenge = new URL(path, "http://x").searchParams.get("hub.challenge")
    response.end(challenge ?? "")
  })
})
afterAll(async () => {
  await receiver.close()
  await service.close()
})

const basic = `admin:${adminToken}`

/** The path of a new resource. */
const created = async (path: string, body: string, options: Sending = {}): Promise<string> => {
  const answer = await service.send("POST", path, { basic, body, ...options })
  return answer.header("location").replace(service.base, "")
}

/** The path of a notification in a new mailbox. */
const deposited = async (name: string): Promise<string> => {
  const mailbox = await created("/mailboxes", `<mailbox><name>${name}</name></mailbox>`)
  return created(mailbox, "hello", { type: "text/plain" })
}

/** For each PUT of the table: the path of a resource, where it is read, and a valid body. */
const puts: Readonly<
  Record<string, () => Promise<{ path: string; read?: string; body: string }>>
> = {
  "/content/{content}": async () => ({ path: await created("/content", "whole"), body: "part" }),
  "/mailboxes/{mailbox}": async () => ({
    path: await created("/mailboxes", "<mailbox><name>partial</name></mailbox>"),
    body: "<mailbox><title>Part</title></mailbox>"
  }),
  "/mailboxes/{mailbox}/notifications/{notification}/read": async () => {
    const read = await deposited("marked")
    return { path: `${read}/read`, read, body: "" }
  },
  "/mailboxes/{mailbox}/webhook-secret": async () => {
    const read = await deposited("unsigned")
    return {
      path: read.replace(/\/notifications\/.*/, "/webhook-secret"),
      read,
      body: "<webhook-secret><secret>0123456789abcdef</secret></webhook-secret>"
    }
  },
  "/mailboxes/{mailbox}/read": async () => {
    const read = await deposited("all-marked")
    const path = read.replace(/\/notifications\/.*/, "/read")
    return { path, read, body: "<read><time>2100-01-01T00:00:00Z</time></read>" }
  },
  "/accounts/{account}": async () => {
    await created("/mailboxes", "<mailbox><name>reports</name></mailbox>")
    const body = "<account><failure-reports>reports</failure-reports></account>"
    return { path: "/accounts/admin", body }
  },
  "/mailboxes/{mailbox}/registrations/{registration}": async () => {
    const mailbox = await created("/mailboxes", "<mailbox><name>watched</name></mailbox>")
    const body = `<registration><callback>${receiver.origin}/hook</callback></registration>`
    const path = await created(`${mailbox}/registrations`, body)
    // What it shows changes when its callback has answered.
    await expect.poll(async () => (await service.send("GET", path, { basic })).text)
      .not.toContain("unverified")
    return { path, body: body.replace("/hook", "/other") }
  },
  "/cabinets/{cabinet}": async () => {
    const body = `<cabinet><mailbox href="${service.base}/mailboxes/a"/></cabinet>`
    return {
      path: await created("/cabinets", body),
      body: body.replace("mailboxes/a", "mailboxes/b")
    }
  },
  ...Object.fromEntries(
    ["name", "quest", "hard_question"].map((step) => [
      `/sessions/{session}/${step}`,
      async () => {
        const read = await created("/sessions", "<answer continue=\"true\">Yes</answer>")
        return { path: `${read}/${step}`, read, body: "<answer>Arthur</answer>" }
      }
    ])
  ),
  "/outgoing/{account}/pauses": async () => ({
    path: "/outgoing/admin/pauses",
    body: "<pauses status=\"paused\"/>"
  }),
  "/quotes/{symbol}": async () => ({
    path: "/quotes/PART",
    body: "<quote><price>1</price></quote>"
  }),
  "/customers/{customer}": async () => ({
    path: "/customers/part",
    body: "<customer><name>Part</name><age>30</age></customer>"
  }),
  "/customers": async () => ({
    path: "/customers",
    body: "<customers><customer id=\"one\"><name>One</name><age>30</age></customer></customers>"
  }),
  "/queries/{query}": async () => {
    const body = "<query on=\"customers\"><return>name</return></query>"
    return { path: await created("/queries", body), body: body.replace("name", "age") }
  }
}

describe("PUT with Content-Range", () => {
  it("has a case for each PUT of the table", () => {
    const table = resourceTable(service.service).flatMap(({ methods, pattern }) =>
      "PUT" in methods ? [pattern] : []
    )
    expect(Object.keys(puts).sort()).toEqual([...table].sort())
  })

  it("is refused before anything is stored, and says what to do", async () => {
    for (const make of Object.values(puts)) {
      const { body, path, read = path } = await make()
      const shown = async () => {
        const { status, text } = await service.send("GET", read, { basic })
        return [status, text.replaceAll(/ time="[^"]*"/g, "")]
      }
      const before = await shown()
      const headers = { "Content-Range": "bytes 0-3/9" }
      const accept = "application/problem+json"
      const answer = await service.send("PUT", path, { basic, body, headers, accept })
      expect([path, answer.status, answer.json]).toEqual([
        path,
        400,
        expect.objectContaining({
          type: `${service.base}/problems/malformed`,
          detail: "the request has Content-Range, but PUT here replaces the whole; send all of it "
            + "without the field"
        })
      ])
      expect([path, await shown()]).toEqual([path, before])
      // The same request is valid without the field, except out of order.
      const { status } = await service.send("PUT", path, { basic, body })
      expect([path, status < 300 || (status === 409 && /quest/.test(path))]).toEqual([path, true])
    }
  })
})
